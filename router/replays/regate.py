"""The copy of a route topic's record that its route would write now: pure.

What was written before a route was cut down may not leave again at its old level, so a replay for a
sink passes the route once more, as it is configured when the replay runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final, Literal

from msgspec import Struct

from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.headers import Attributes, read_headers
from hookbus.codecs.trace_context import of_headers
from hookbus.codecs.verdict import Refusal
from hookbus.policies.copies import Copier
from hookbus.policies.correlation import Moment
from hookbus.policies.levels import Level, known_level
from hookbus.router.copy_desk import Case, CopyDesk
from hookbus.router.correlation import Correlator
from hookbus.router.formats import Formatter
from hookbus.router.memory import Memory
from hookbus.router.orders import RoutePlan, order
from hookbus.router.pipeline import context
from hookbus.router.types import Output, Record

NotAgain = Literal["invalid", "no_route", "unmatched", "untranslated"]
"""Why a record has no copy now: it is no event of ours, no route writes its topic, none that does
matches it, or it can't be said in the route's format."""

_TRANSLATED: Final = ("ahp", "aep")


class Regate(Struct, frozen=True, kw_only=True):
    """`memory` makes one that knows nothing: the questions that answers belong to are not looked
    up again, so an answer that is cut down keeps less than it did when it came."""

    decoder: Decoder
    correlator: Correlator
    copier: Copier
    formatter: Formatter
    routes: tuple[RoutePlan, ...]
    memory: Callable[[], Memory]

    def copies(self, record: Record) -> list[Output] | NotAgain:
        """The records that are written for it now; more than one only in another format."""
        attributes = read_headers(record.headers)
        event = self.decoder.decode(record.value or b"")
        if attributes is None or isinstance(event, Refusal):
            return "invalid"
        routes = [route for route in self.routes if route.topic == record.topic]
        if not routes:
            return "no_route"
        matching = [route for route in routes if _matches(route, event)]
        return self._pass(record, event, attributes, matching) if matching else "unmatched"

    def _pass(
        self, record: Record, event: Event, attributes: Attributes, routes: Sequence[RoutePlan]
    ) -> list[Output] | NotAgain:
        """A copy doesn't say which route wrote it, so it passes all that may have."""
        level: Level = known_level(attributes.capture) or "full"
        *others, last = routes
        for route in others:
            made, level = self._write(record, event, level, route, translate=False)
            decoded = self.decoder.decode((made[0].value if made else None) or b"")
            if isinstance(decoded, Refusal):
                return "invalid"
            event = decoded
        made, level = self._write(record, event, level, last, translate=True)
        return "untranslated" if made is None else made

    def _write(
        self, record: Record, event: Event, level: Level, route: RoutePlan, *, translate: bool
    ) -> tuple[list[Output] | None, Level]:
        """The copy for a route, None if it can't be said in the route's format, and its level."""
        moment = Moment(record.offset, record.timestamp)
        finding = self.correlator.examine(event, moment, self.memory().pending)
        copies = self.copier.of(event, context(level, finding))
        granted = copies.grant(route.ceiling, redact=route.redact)
        trace = event.trace or of_headers(record.headers)
        desk = CopyDesk(
            Case(event, record.offset, finding, None, trace), copies, self.formatter, sys.maxsize
        )
        wanted = route.format if translate and route.format != event.protocol else None
        made = desk.filled(order(granted, route.view, wanted))
        if not isinstance(made, list):
            return None, granted.level
        return [Output(route.topic, desk.key, *each) for each in made], granted.level


def _matches(route: RoutePlan, event: Event) -> bool:
    """A translated copy no longer has the names that the filter was written for."""
    translated = route.format in _TRANSLATED and route.format == event.protocol
    return translated or route.filter.matches(event.tree)
