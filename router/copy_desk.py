"""The records that the copies of one event become: each distinct one is made once and shared."""

from __future__ import annotations

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

_Records = list[tuple[bytes, Headers]]
"""The values of records, with their headers."""


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

    __slots__ = ("_case", "_copies", "_formatter", "_identity", "_key", "_made", "dropped")

    def __init__(self, case: Case, copies: Copies, formatter: Formatter) -> None:
        self._case = case
        self._copies = copies
        self._formatter = formatter
        self._key = case.event.source.encode()
        self._made: list[tuple[Grant, View, Format | None, _Records | Unsaid]] = []
        self._identity: Headers | None = None
        self.dropped = 0
        """The most attributes that one of the copies could not carry."""

    def outputs(
        self, topic: str, granted: Grant, view: View, wanted: Format | None
    ) -> list[Output] | Unsaid:
        """The records for a topic: one, or as many as it takes to say the event in this format."""
        for grant, shown, format_, made in self._made:
            # equal grants are identical; equal views often are
            if grant is granted and format_ == wanted and (shown is view or shown == view):
                records = made
                break
        else:
            records = self._make(granted, view, wanted)
            self._made.append((granted, view, wanted, records))
        if isinstance(records, Unsaid):
            return records
        return [Output(topic, self._key, value, headers) for value, headers in records]

    def _make(self, granted: Grant, view: View, wanted: Format | None) -> _Records | Unsaid:
        event = self._case.event
        if wanted is not None and wanted != event.protocol:
            return self._said(granted, view, wanted)
        if self._identity is None:
            self._identity = self._identity_of(event.id, event.type)
        value = self._copies.encoded(granted, view)
        headers = self._identity + self._of_copy(granted)
        return [(event.raw if value is None else value, headers)]

    def _said(self, granted: Grant, view: View, wanted: Format) -> _Records | Unsaid:
        """The copy in another format."""
        written = self._formatter.write(self._copy(granted, view), wanted, self._case.offset)
        if isinstance(written, Unsaid):
            return written
        self.dropped = max(self.dropped, *(each.dropped for each in written))
        return [(each.value, self._headers(each, granted)) for each in written]

    def _copy(self, granted: Grant, view: View) -> Copy:
        event, finding = self._case.event, self._case.finding
        note = finding.note if finding is not None else None
        form = note.extension if note is not None else None
        copy = self._copies.copy(granted, view)
        if copy is None:
            tree, raw = event.tree, event.raw
        else:
            tree, raw = copy, encode(copy)
        return Copy(event, tree, raw, granted.level, view, form, self._case.trace)

    def _headers(self, written: Written, granted: Grant) -> Headers:
        identity = self._identity_of(written.id, written.type)
        return written.headers + identity + self._of_copy(granted)

    def _of_copy(self, granted: Grant) -> Headers:
        finding, trace = self._case.finding, self._case.trace
        body = finding.body if finding is not None and granted.level != "none" else None
        headers = capture_headers(granted.level, body)
        return headers if trace is None else headers + trace.headers(granted.level)

    def _identity_of(self, identity: str, kind: str) -> Headers:
        event, violation = self._case.event, self._case.violation
        return identity_headers(
            Attributes(identity, event.source, kind, "", event.time, None, violation)
        )
