"""Problems of the formats that routes write: what they could not say, and who could not take it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from hookbus.codecs.bridge import COUNTERPARTS, SAYABLE
from hookbus.router.configuration.config import Config, Route

_NOT_FOR_BACKENDS: Final = ("aep", "cloudevents")


def format_problems(config: Config, ahp_types: Collection[str]) -> Iterator[str]:
    """Each with its path. A type that a route matches and its format can't say is a problem, not
    silence."""
    for name, route in config.routes.items():
        at = f"routes.{name}.match.type"
        if route.format == "aep":
            yield from _problems_of_aep(at, route, ahp_types)
        elif route.format == "ahp":
            yield from _problems_of_ahp(at, route, ahp_types)
    written = {
        route.topic: (name, route.format)
        for name, route in config.routes.items()
        if route.format in _NOT_FOR_BACKENDS
    }
    for name, sink in config.sinks.items():
        for topic in sink.topics if sink.http is not None else ():
            if topic in written:
                route_name, format_ = written[topic]
                yield (
                    f"sinks.{name}.topics: route {route_name} writes {topic} in format {format_}; "
                    "an HTTP backend takes AHP events"
                )


def _problems_of_aep(at: str, route: Route, ahp_types: Collection[str]) -> Iterator[str]:
    if "type" not in route.match:
        yield (
            f"{at}: missing; format aep says some types of AHP only, so name those to be said: "
            f"{', '.join(COUNTERPARTS)}; and types of AEP as you like"
        )
        return
    silent = [kind for kind in ahp_types if _wanted(route, kind) and kind not in COUNTERPARTS]
    if silent:
        said = [kind for kind in COUNTERPARTS if _wanted(route, kind)]
        instead = f"; name {', '.join(said)} instead" if said else ""
        yield f"{at}: AEP has no counterpart of {', '.join(silent)}{instead}"


def _problems_of_ahp(at: str, route: Route, ahp_types: Collection[str]) -> Iterator[str]:
    """A family that has types with and without a counterpart stands for those with one."""
    for wanted in _list(route.match.get("type", [])):
        if not any(_matches(wanted, kind) for kind in (*ahp_types, *SAYABLE)):
            yield f"{at}: AHP has no counterpart of {wanted}, only of {', '.join(SAYABLE)}"


def _wanted(route: Route, kind: str) -> bool:
    return any(_matches(wanted, kind) for wanted in _list(route.match["type"]))


def _list(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def _matches(wanted: Any, kind: str) -> bool:
    if not isinstance(wanted, str):
        return False
    return kind.startswith(wanted[:-1]) if wanted.endswith(".*") else kind == wanted
