"""What the router does to one record: pure, a record in, records out.

    decode ► validate ► for each route: match ► gate ► encode

An event that some route's filter matches is copied to that route's topic at the level that the
route may see; a value that is no valid event becomes one dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.headers import Attributes, write_headers
from hookbus.codecs.strict import encode
from hookbus.codecs.verdict import Refusal
from hookbus.policies.capture import Rewriter
from hookbus.policies.failures import HOOK_FAILURE
from hookbus.policies.levels import Grant, Level, declared, grant, held
from hookbus.policies.match import Filter
from hookbus.router.dead_letters import DeadLetterOffice
from hookbus.router.types import Headers, Output, Record

Decision = Literal["routed", "filtered", "unmatched", "dead_lettered"]
"""What became of one event at one route; `unmatched` matched no route at all."""

_TOMBSTONE: Final = Refusal("invalid_json")
_FAILURE_GRANT: Final = Grant("metadata", rewrite=True)


class RoutePlan(Struct, frozen=True):
    """A route, ready to use."""

    name: str
    topic: str
    filter: Filter
    ceiling: Level


class Outcome(Struct, frozen=True):
    """Everything that one record led to; `decisions` are in the order of the routes."""

    outputs: tuple[Output, ...]
    decisions: tuple[Decision, ...]
    refusal: Refusal | None = None
    event_type: str | None = None
    levels: tuple[Level, ...] = ()
    """The levels of the copies that were written."""
    malformed_declaration: bool = False


class Pipeline:
    """The pure middle of the router.

    `levels` maps each ingress topic to the level that its AHP events have; `largest` is the
    longest value that a record may have, in bytes.
    """

    def __init__(
        self,
        decoder: Decoder,
        rewriter: Rewriter,
        routes: tuple[RoutePlan, ...],
        office: DeadLetterOffice,
        *,
        levels: Mapping[str, Level],
        failures_topic: str | None,
        largest: int,
    ) -> None:
        self._decoder = decoder
        self._rewriter = rewriter
        self._routes = routes
        self._office = office
        self._levels = levels
        self._failures_topic = failures_topic
        self._largest = largest
        self._all_dead = _all(routes, "dead_lettered")
        self._all_unmatched = _all(routes, "unmatched")

    def step(self, record: Record) -> Outcome:
        """Never raises for anything that a record may hold."""
        event = _TOMBSTONE if record.value is None else self._decoder.decode(record.value)
        if isinstance(event, Refusal):
            letter = self._office.refused(record, event)
            return Outcome((letter,), self._all_dead, refusal=event)
        return self._route(record, event)

    def _route(self, record: Record, event: Event) -> Outcome:
        declaration = declared(event.tree)
        level = held(self._levels[record.topic], declaration)
        desk = _CopyDesk(self._rewriter, event)
        outputs: list[Output] = []
        decisions: list[Decision] = []
        levels: list[Level] = []
        for route in self._routes:
            if not route.filter.matches(event.tree):
                decisions.append("filtered")
                continue
            granted = grant(level, route.ceiling)
            copy = desk.output(route.topic, granted)
            if copy.value is not None and len(copy.value) > self._largest:
                outputs.append(self._office.copy_too_large(record, route.name))
                decisions.append("dead_lettered")
                continue
            outputs.append(copy)
            decisions.append("routed")
            levels.append(granted.level)
        if self._failures_topic is not None and event.type == HOOK_FAILURE:
            # A harness reports its own backend: like our own failures, it must reach every audit
            # sink outside that backend's domain, whatever the routes say (DESIGN §5.4).
            outputs.append(desk.output(self._failures_topic, _FAILURE_GRANT))
        return Outcome(
            tuple(outputs),
            tuple(decisions) if _only(decisions) != "filtered" else self._all_unmatched,
            event_type=event.type,
            levels=tuple(levels),
            malformed_declaration=declaration == "malformed",
        )


def _all(routes: tuple[RoutePlan, ...], decision: Decision) -> tuple[Decision, ...]:
    return tuple(decision for _ in routes)


def _only(decisions: list[Decision]) -> Decision | None:
    """The one decision that all routes share, if they do."""
    return decisions[0] if decisions and len(set(decisions)) == 1 else None


class _CopyDesk:
    """The copies of one event: each distinct one is made once and shared."""

    def __init__(self, rewriter: Rewriter, event: Event) -> None:
        self._rewriter = rewriter
        self._event = event
        self._key = event.source.encode()
        self._made: dict[Grant, tuple[bytes, Headers]] = {}

    def output(self, topic: str, granted: Grant) -> Output:
        made = self._made.get(granted)
        if made is None:
            value = copy_of(self._event, granted, self._rewriter)
            made = self._made[granted] = (value, _headers(self._event, granted.level))
        value, headers = made
        return Output(topic, self._key, value, headers)


def _headers(event: Event, level: Level) -> Headers:
    return write_headers(
        Attributes(
            id=event.id, source=event.source, type=event.type, time=event.time, capture=level
        )
    )


def copy_of(event: Event, granted: Grant, rewriter: Rewriter) -> bytes:
    """The bytes of the copy: the event's own where it may pass, otherwise rewritten."""
    if not granted.rewrite:
        return event.raw
    if granted.level not in ("none", "metadata"):
        raise ValueError("only the levels below redacted have a rewriting plan")
    return encode(rewriter.rewrite(event.tree, granted.level))
