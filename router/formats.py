"""The copy of an event as the record of a route holds it: as it came, said in the other protocol,
or in a CloudEvent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from hookbus.codecs.aep_from_ahp import ToAep
from hookbus.codecs.ahp_from_aep import to_ahp
from hookbus.codecs.bridge import Shown, Unsaid
from hookbus.codecs.cloudevents import CONTENT_TYPE, structured, wrap_aep, wrap_ahp
from hookbus.codecs.event import Event
from hookbus.codecs.headers import Headers
from hookbus.codecs.strict import encode
from hookbus.codecs.trace_context import TraceContext
from hookbus.policies.capture import FormNote, Rewriter, View
from hookbus.policies.levels import Grant, Level

Format = Literal["ahp", "aep", "cloudevents"]


class Copy(Struct, frozen=True):
    """A copy at its level: `tree` and `raw` are the same event. `form` is what the extension
    `dev.hookbus.form` says of an elicitation, `trace` the trace that the event belongs to."""

    event: Event
    tree: Mapping[str, Any]
    raw: bytes
    level: Level
    view: View
    form: Mapping[str, Any] | None
    trace: TraceContext | None = None


class Written(Struct, frozen=True):
    """The value of a record, the id and type of the event that it holds, and headers of its format;
    `dropped` counts attributes that the format can't carry."""

    value: bytes
    id: str
    type: str
    headers: Headers = ()
    dropped: int = 0


class Formatter:
    """Writes copies in the format that a route asks for, where that is not their own."""

    def __init__(self, to_aep: ToAep, rewriter: Rewriter) -> None:
        self._to_aep = to_aep
        self._rewriter = rewriter

    def write(self, copy: Copy, wanted: Format, offset: int) -> tuple[Written, ...] | Unsaid:
        """`offset` is that of the event's record, and tells its place within its source."""
        if wanted == "cloudevents":
            return (_in_cloudevent(copy),)
        return self._in_aep(copy, offset) if wanted == "aep" else self._in_ahp(copy)

    def _in_aep(self, copy: Copy, offset: int) -> tuple[Written, ...] | Unsaid:
        form = copy.form if copy.form is not None and copy.level != "none" else {}
        said = self._to_aep.say(copy.event.tree, Shown(copy.tree, copy.level, form), offset)
        if isinstance(said, Unsaid):
            return said
        return tuple(Written(encode(made), made["id"], made["type"]) for made in said)

    def _in_ahp(self, copy: Copy) -> tuple[Written, ...] | Unsaid:
        said = to_ahp(copy.tree, copy.level)
        if isinstance(said, Unsaid):
            return said
        note = None if said.form is None else FormNote(said.form)
        granted = Grant(copy.level, rewrite=True)
        made = self._rewriter.copy(said.tree, granted, copy.view, note)
        return (Written(encode(made), made["id"], made["type"]),)


def _in_cloudevent(copy: Copy) -> Written:
    event = copy.event
    if event.protocol == "ahp":
        cloud = wrap_ahp(event, copy.raw, copy.level, copy.trace)
    else:
        cloud = wrap_aep(copy.tree, copy.raw)
    return Written(structured(cloud), event.id, event.type, (CONTENT_TYPE,), cloud.dropped)
