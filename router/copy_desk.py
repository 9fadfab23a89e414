"""The records that the copies of one event become: each distinct one is made once and shared."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from hookbus.codecs.aep_stream import Rule
from hookbus.codecs.bridge import Unsaid
from hookbus.codecs.event import Event
from hookbus.codecs.headers import capture_headers, identity_headers
from hookbus.codecs.strict import encode
from hookbus.codecs.trace_context import TraceContext
from hookbus.policies.copies import Copies
from hookbus.policies.levels import Grant
from hookbus.router.finding import Finding
from hookbus.router.formats import Copy, Format, Formatter
from hookbus.router.orders import Order
from hookbus.router.types import Headers, Output

Made = list[tuple[bytes, Headers]]
"""The values of records, with their headers: one, or as many as it takes to say the event."""

_MOST_AROUND: Final = 5
"""A record is at most so many times its value, and `_AROUND` bytes: its key is the source in the
value, and its headers take at most three times what they say again of it; what else they say is
bounded."""
_AROUND: Final = 2048


class Case(Struct, frozen=True):
    """An event with what is known of it; `offset` is that of its record, `trace` the trace
    that it belongs to."""

    event: Event
    offset: int
    finding: Finding | None
    violation: Rule | None
    trace: TraceContext | None = None


class TooLarge:
    """Instead of a copy that doesn't fit into a record."""


TOO_LARGE: Final = TooLarge()


class CopyDesk:
    """Writes the copies of one event for the routes that order them; `largest` is the most bytes
    that a record may take."""

    __slots__ = (
        "_case", "_copies", "_formatter", "_identity", "_largest", "_made", "dropped", "key",
    )  # fmt: skip

    def __init__(self, case: Case, copies: Copies, formatter: Formatter, largest: int) -> None:
        self._case = case
        self._copies = copies
        self._formatter = formatter
        self._largest = largest
        self._made: dict[Order, Made | Unsaid | TooLarge] = {}
        self._identity: Headers | None = None
        self.key: Final = case.event.source.encode()
        """The key of the records."""
        self.dropped = 0
        """The most attributes that one of the copies could not carry."""

    def filled(self, order: Order) -> Made | Unsaid | TooLarge:
        """What is written for an order."""
        made = self._made.get(order)
        if made is None:
            made = self._said(order, order.format) if order.format else self._written(order)
            self._made[order] = made
        return made

    def _written(self, order: Order) -> Made | TooLarge:
        """The copy in the event's own protocol."""
        case = self._case
        if self._identity is None:
            self._identity = self._identity_of(case.event.id, case.event.type)
        value = self._copies.encoded(order.granted, order.view)
        if value is None:
            value = case.event.raw
        plain = case.finding is None and case.trace is None
        headers = self._identity + (order.headers if plain else self._of_copy(order.granted))
        if _MOST_AROUND * len(value) + _AROUND <= self._largest or self._fits(value, headers):
            return [(value, headers)]
        return TOO_LARGE

    def _said(self, order: Order, wanted: Format) -> Made | Unsaid | TooLarge:
        """The copy in another format."""
        written = self._formatter.write(self._copy(order), wanted, self._case.offset)
        if isinstance(written, Unsaid):
            return written
        self.dropped = max(self.dropped, *(each.dropped for each in written))
        of_copy = self._of_copy(order.granted)
        made = [
            (each.value, each.headers + self._identity_of(each.id, each.type) + of_copy)
            for each in written
        ]
        return made if all(self._fits(*each) for each in made) else TOO_LARGE

    def _copy(self, order: Order) -> Copy:
        event, finding = self._case.event, self._case.finding
        note = finding.note if finding is not None else None
        form = note.extension if note is not None else None
        copy = self._copies.copy(order.granted, order.view)
        if copy is None:
            tree, raw = event.tree, event.raw
        else:
            tree, raw = copy, encode(copy)
        level = order.granted.level
        return Copy(event, tree, raw, level, order.view, form, self._case.trace)

    def _of_copy(self, granted: Grant) -> Headers:
        finding, trace = self._case.finding, self._case.trace
        body = finding.body if finding is not None and granted.level != "none" else None
        headers = capture_headers(granted.level, body)
        return headers if trace is None else headers + trace.headers(granted.level)

    def _identity_of(self, identity: str, kind: str) -> Headers:
        event, violation = self._case.event, self._case.violation
        return identity_headers(identity, event.source, kind, event.time, violation)

    def _fits(self, value: bytes, headers: Headers) -> bool:
        return Output("", self.key, value, headers).size <= self._largest
