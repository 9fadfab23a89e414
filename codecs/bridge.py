"""Events of one protocol said in the other, where it has an honest counterpart.

| AHP | AEP |
|---|---|
| `session.start` | `session.started` |
| `session.end` | `session.ended` |
| `turn.start` | `run.started` |
| `turn.end` | `run.finished`, `run.failed` (failed, max_iterations), `run.cancelled` |
| `tool.before` | `tool.requested` |
| `tool.after` | `tool.completed` (ok), `tool.denied`, `tool.failed` (error, cancelled, timeout) |
| `user.attention` | `attention.requested` |
| `user.elicitation.request` | `attention.requested`: kind `form`, or `other` in url mode |
| `user.elicitation.result` | `attention.answered` and `attention.resolved` (accept), or only
`attention.resolved` (dismissed) |

Back go only the elicitations: `attention.requested` of kind `form`, `attention.answered` with
values, and what came from one of AHP. Everything else has no counterpart.

`id`, `source` and `time` stay; the harness is the `agent`, the turn the `run`, `parentEventId` the
`cause`. The request that a result answers is its `subject`. `epoch` is 0, and `seq` is twice the
offset of the record on the bus: it rises within a source, whose events share a partition, and a
record that is read again has the same one. `capture` is the level of the copy.

An answer that was accepted is two events, because AEP's `attention.answered` leaves its request
open: the second one has the id `ID.resolved`, the next `seq`, and the first as its `cause`. Nothing
in AHP ends a `user.attention`.

What AEP has no attribute for goes into extension attributes, which every hop keeps and none cuts
down; so they hold identifiers and enums alone, and a URL goes into `data.context`, which needs
`full`:

    ahptype      type of the AHP event
    ahpversion   version of the harness
    ahptrigger   of a session or turn
    ahpoutcome   of a session, turn or tool call
    ahpkind      of a `user.attention` whose kind AEP doesn't have
    ahpserver, ahpmode, ahpaction   of an elicitation
    ahpbody      code of an elicitation's nonconforming body
    ahpresult    what is known of the request that a result answers, such as `orphan`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from hookbus.codecs.elicitation_event import ASKED, TOLD

COUNTERPARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "session.start": ("session.started",),
    "session.end": ("session.ended",),
    "turn.start": ("run.started",),
    "turn.end": ("run.finished", "run.failed", "run.cancelled"),
    "tool.before": ("tool.requested",),
    "tool.after": ("tool.completed", "tool.denied", "tool.failed"),
    "user.attention": ("attention.requested",),
    ASKED: ("attention.requested",),
    TOLD: ("attention.answered", "attention.resolved"),
}
"""AHP type -> the AEP types that say it."""


SAYABLE: Final = ("attention.requested", "attention.answered", "attention.resolved")
"""The AEP types of which some events have a counterpart in AHP."""

CONTENT: Final = ("redacted", "full")
"""The capture levels at which a copy may hold texts."""


class Unsaid(Struct, frozen=True):
    """Why an event can't be said in the other protocol.

    - `no_counterpart`: it has nothing of the kind;
    - `no_session`: AEP orders such events within a session, and this one has none;
    - `no_request`: it answers a request that it doesn't name.
    """

    reason: Literal["no_counterpart", "no_session", "no_request"]


class Shown(Struct, frozen=True):
    """What a copy of an AHP event may say: the copy itself, its capture level, and what is known of
    its form (members `fields`, `values`, `body` and `result` of the extension `dev.hookbus.form`,
    which are structure and may be said from `metadata` on)."""

    tree: Mapping[str, Any]
    level: str
    form: Mapping[str, Any]

    @property
    def content(self) -> bool:
        """Whether texts may be said."""
        return self.level in CONTENT


class Said(Struct, frozen=True):
    """What an AEP event says besides its envelope."""

    type: str
    data: dict[str, Any]
    extensions: dict[str, Any]
    subject: str | None = None


def texts(parts: list[Mapping[str, Any]]) -> str:
    """The texts of the parts that are at hand, a line each."""
    return "\n".join(part["text"] for part in parts if "text" in part)


def prompt_of(agent: str, kind: str, fields: int | None = None) -> str:
    """What a prompt says without anything of its text (AEP-0003 §9.2); `fields` is their number in
    a form."""
    if fields is None:
        return f"{agent} requests {kind}"
    return f"{agent} requests input ({fields} fields)"
