"""An event as it travels through the pipeline."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from hookbus.codecs.trace_context import TraceContext

Protocol = Literal["ahp", "aep"]


class Event(Struct, frozen=True):
    """One valid event. Its identity is `(source, id)`, never `id` alone.

    `time` is an RFC 3339 date-time. `tree` and `raw` are the event itself, without the message that
    carried it. `tree` is shared: whoever wants another one makes a copy. `dropped` counts
    attributes around it, of a CloudEvent, that it can't have. `trace` is the context that the event
    itself names, or the CloudEvent around it. `struct` is the event once more, as the derived type
    of `hookbus.codecs.typed` (AHP); None where only the schema itself could accept it. It is shared
    as well.
    """

    protocol: Protocol
    type: str
    source: str
    id: str
    time: str
    tree: dict[str, Any]
    raw: bytes
    dropped: int = 0
    trace: TraceContext | None = None
    struct: Struct | None = None

    @property
    def session(self) -> str | None:
        """The session's id, None where the event has none; AEP's is only unique for its source."""
        session = self.tree.get("session")
        found: str | None = session["id"] if session and self.protocol == "ahp" else session
        return found

    @property
    def emitter(self) -> str:
        """What emitted it: the harness's name in AHP, the agent in AEP."""
        name: str = self.tree["harness"]["name"] if self.protocol == "ahp" else self.tree["agent"]
        return name
