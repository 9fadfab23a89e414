"""Which copy each route gets of an event: it follows from the event's protocol and level alone, and
is worked out once for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Final, get_args

from msgspec import Struct

from hookbus.codecs.event import Protocol
from hookbus.codecs.headers import capture_headers
from hookbus.policies.capture import View
from hookbus.policies.copies import UNREDACTED, granted
from hookbus.policies.levels import LEVELS, Grant, Level
from hookbus.policies.match import Filter
from hookbus.router.formats import Format
from hookbus.router.types import Headers

WHOLE: Final = View()


class RoutePlan(Struct, frozen=True):
    """A route, ready to use."""

    name: str
    topic: str
    filter: Filter
    ceiling: Level
    view: View = WHOLE
    format: Format | None = None
    redact: bool = False


class Order(Struct, frozen=True, eq=False):
    """One distinct copy of an event, in its own protocol or in the `format`. Orders for the same
    copy are one object, by which the copy is found again. `headers` are those of a copy of which
    nothing else is known; `spare` takes its place where the redaction pipeline fails."""

    granted: Grant
    view: View
    format: Format | None
    headers: Headers
    spare: Order | None = None


def order(grant: Grant, view: View, wanted: Format | None, spare: Order | None = None) -> Order:
    """An order by itself."""
    return Order(grant, view, wanted, capture_headers(grant.level, None), spare)


class Orders:
    """The orders of all routes, for events of every protocol and level."""

    def __init__(self, routes: Iterable[RoutePlan]) -> None:
        self._known: dict[tuple[Grant, View, Format | None], Order] = {}
        kinds = product(get_args(Protocol), LEVELS)
        routes = tuple(routes)
        self._of: Mapping[tuple[Protocol, Level], tuple[tuple[RoutePlan, Order], ...]] = {
            kind: tuple((route, self._order(route, *kind)) for route in routes) for kind in kinds
        }

    def of(self, protocol: Protocol, level: Level) -> tuple[tuple[RoutePlan, Order], ...]:
        """Each route with its order, in the order of the routes."""
        return self._of[protocol, level]

    def audit(self, grant: Grant) -> Order:
        """The order of the failures topic."""
        return self._once(grant, WHOLE, None)

    def _order(self, route: RoutePlan, protocol: Protocol, level: Level) -> Order:
        grant = granted(protocol, level, route.ceiling, redact=route.redact)
        wanted = None if route.format == protocol else route.format
        return self._once(grant, route.view, wanted)

    def _once(self, grant: Grant, view: View, wanted: Format | None) -> Order:
        known = self._known.get((grant, view, wanted))
        if known is None:
            spare = self._once(UNREDACTED, view, wanted) if grant.redact else None
            known = self._known[grant, view, wanted] = order(grant, view, wanted, spare)
        return known
