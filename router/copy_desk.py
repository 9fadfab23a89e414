"""The records that the copies of one event become: each distinct one is made once and shared."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from hookbus.codecs.aep_stream import Rule
from hookbus.codecs.bridge import Unsaid
from hookbus.codecs.event import Event
from hookbus.codecs.headers import Attributes, capture_headers, identity_headers
from hookbus.codecs.strict import encode
from hookbus.codecs.trace_context import TraceContext
from hookbus.policies.capture import View
from hookbus.policies.copies import Copies
from hookbus.policies.levels import Grant
from hookbus.router.finding import Finding
from hookbus.router.formats import Copy, Format, Formatter, Written
from hookbus.router.types import Headers, Output


class Case(Struct, frozen=True):
    """An event with what is known of it; `offset` is that of its record, `trace` the trace
    that it belongs to."""

    event: Event
    offset: int
    finding: Finding | None
    violation: Rule | None
    trace: TraceContext | None = None


class CopyDesk:
    """Writes the copies of one event for the routes that want them."""

    def __init__(self, case: Case, copies: Copies, formatter: Formatter) -> None:
        self._case = case
        self._copies = copies
        self._formatter = formatter
        self._key = case.event.source.encode()
        note = case.finding.note if case.finding is not None else None
        self._form = note.extension if note is not None else None
        self._cut: dict[tuple[Grant, View], tuple[dict[str, Any], bytes]] = {}
        self._made: dict[
            tuple[Grant, View, Format | None], list[tuple[bytes, Headers]] | Unsaid
        ] = {}
        self._identities: dict[tuple[str, str], Headers] = {}
        self.dropped = 0
        """The most attributes that one of the copies could not carry."""

    def outputs(
        self, topic: str, granted: Grant, view: View, wanted: Format | None
    ) -> list[Output] | Unsaid:
        """The records for a topic: one, or as many as it takes to say the event in this format."""
        made = self._made.get((granted, view, wanted))
        if made is None:
            made = self._made[granted, view, wanted] = self._make(granted, view, wanted)
        if isinstance(made, Unsaid):
            return made
        return [Output(topic, self._key, value, headers) for value, headers in made]

    def _make(
        self, granted: Grant, view: View, wanted: Format | None
    ) -> list[tuple[bytes, Headers]] | Unsaid:
        cut = self._cut.get((granted, view))
        if cut is None:
            cut = self._cut[granted, view] = self._copy(granted, view)
        case = self._case
        copy = Copy(case.event, *cut, granted.level, view, self._form, case.trace)
        written = self._formatter.write(copy, wanted, case.offset)
        if isinstance(written, Unsaid):
            return written
        self.dropped = max(self.dropped, *(each.dropped for each in written))
        return [(each.value, self._headers(each, granted)) for each in written]

    def _copy(self, granted: Grant, view: View) -> tuple[dict[str, Any], bytes]:
        event = self._case.event
        copy = self._copies.copy(granted, view)
        return (event.tree, event.raw) if copy is None else (copy, encode(copy))

    def _headers(self, written: Written, granted: Grant) -> Headers:
        finding = self._case.finding
        body = finding.body if finding is not None and granted.level != "none" else None
        identity = self._identity(written.id, written.type)
        trace = self._case.trace
        traced = () if trace is None else trace.headers(granted.level)
        return written.headers + identity + capture_headers(granted.level, body) + traced

    def _identity(self, identity: str, kind: str) -> Headers:
        """Of one event all copies share theirs."""
        known = self._identities.get((identity, kind))
        if known is None:
            event, violation = self._case.event, self._case.violation
            known = self._identities[identity, kind] = identity_headers(
                Attributes(identity, event.source, kind, "", event.time, stream=violation)
            )
        return known
