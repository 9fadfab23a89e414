"""What the router does to one record: pure, a record in, records out.

    decode ► validate ► correlate ► for each route: match ► gate ► format ► encode

An event that some route's filter matches is copied to that route's topic at the level that the
route may see; a value that is no valid event becomes one dead letter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from hookbus.codecs.aep_stream import Rule
from hookbus.codecs.bridge import Unsaid
from hookbus.codecs.carried import binary_attributes
from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.trace_context import TraceContext, of_headers
from hookbus.codecs.verdict import Refusal
from hookbus.policies.capture import View
from hookbus.policies.copies import Claim, Context, Copier, Copies
from hookbus.policies.correlation import Moment
from hookbus.policies.failures import HOOK_FAILURE
from hookbus.policies.levels import Grant, Level
from hookbus.policies.match import Filter
from hookbus.router.copy_desk import Case, CopyDesk
from hookbus.router.correlation import CORRELATED, Correlator
from hookbus.router.dead_letters import DeadLetterOffice
from hookbus.router.finding import Finding
from hookbus.router.formats import Format, Formatter
from hookbus.router.memory import Memory
from hookbus.router.types import Output, Record

Decision = Literal["routed", "filtered", "unmatched", "dead_lettered", "untranslated"]
"""What became of one event at one route; `unmatched` matched no route at all, and `untranslated`
can't be said in the route's format."""

_MOST_AROUND: Final = 5
"""A record is at most so many times its value, and `_AROUND` bytes: its key is the source in the
value, and its headers take at most three times what they say again of it; what else they say is
bounded."""
_AROUND: Final = 2048
_TOMBSTONE: Final = Refusal("invalid_json")
_FAILURE_GRANT: Final = Grant("metadata", rewrite=True)
_WHOLE: Final = View()


class RoutePlan(Struct, frozen=True):
    """A route, ready to use."""

    name: str
    topic: str
    filter: Filter
    ceiling: Level
    view: View = _WHOLE
    format: Format | None = None
    redact: bool = False


class Outcome(Struct, frozen=True):
    """Everything that one record led to; `decisions` are in the order of the routes."""

    outputs: tuple[Output, ...]
    decisions: tuple[Decision, ...]
    refusal: Refusal | None = None
    event_type: str | None = None
    levels: tuple[Level, ...] = ()
    """The levels of the copies that were written."""
    claim: Claim | None = None
    """What is wrong with the level that the event declares."""
    finding: Finding | None = None
    """What was found out about an elicitation."""
    violation: Rule | None = None
    """The rule of its stream that the event breaks (AEP)."""
    unredacted: tuple[str, ...] = ()
    """The routes that got the metadata copy because the redaction pipeline failed."""
    dropped: int = 0
    """Attributes that could not pass between the event and a CloudEvent."""
    trace: TraceContext | None = None
    """The trace that the record belongs to."""


class _Gathered:
    """What the routes of one event led to so far."""

    __slots__ = ("levels", "matched", "outputs", "unredacted")

    def __init__(self, outputs: list[Output]) -> None:
        self.outputs = outputs
        self.levels: list[Level] = []
        self.matched = False
        self.unredacted: list[str] = []


class Pipeline:
    """The pure middle of the router.

    `levels` maps each ingress topic to the level that its AHP events have, `changelogs` to the
    changelog of its pending requests; `largest` is the most bytes that a record may take.
    """

    def __init__(
        self,
        decoder: Decoder,
        correlator: Correlator,
        copier: Copier,
        formatter: Formatter,
        routes: tuple[RoutePlan, ...],
        office: DeadLetterOffice,
        *,
        levels: Mapping[str, Level],
        changelogs: Mapping[str, str],
        failures_topic: str | None,
        largest: int,
    ) -> None:
        self._decoder = decoder
        self._correlator = correlator
        self._copier = copier
        self._formatter = formatter
        self._routes = routes
        self._office = office
        self._levels = levels
        self._changelogs = changelogs
        self._failures_topic = failures_topic
        self._largest = largest
        self._all_dead = _all(routes, "dead_lettered")
        self._all_unmatched = _all(routes, "unmatched")

    def too_large(self, record: Record) -> Outcome:
        """For a record with a copy that the bus refuses although it is within the limit."""
        letter = self._office.copy_too_large(record, None)
        return Outcome((letter,), self._all_dead, trace=of_headers(record.headers))

    def broken(self, record: Record) -> Outcome:
        """For a record that met a fault of ours."""
        letter = self._office.broken(record)
        return Outcome((letter,), self._all_dead, trace=of_headers(record.headers))

    def step(self, record: Record, memory: Memory) -> Outcome:
        """Never raises for anything that a record may hold. `memory` is that of the record's
        partition; what changes in its pending requests is among the outputs, for the changelog."""
        event = self._decode(record)
        if isinstance(event, Refusal):
            letter = self._office.refused(record, event)
            return Outcome(
                (letter,), self._all_dead, refusal=event, trace=of_headers(record.headers)
            )
        finding, violation = None, None
        if event.type in CORRELATED:
            moment = Moment(record.offset, record.timestamp)
            finding = self._correlator.examine(event, moment, memory.pending)
        if event.protocol == "aep":
            refuted = finding is not None and finding.refutes
            violation = memory.streams.see(event, refuted=refuted)
        trace = event.trace or (of_headers(record.headers) if record.headers else None)
        rule = violation.rule if violation else None
        return self._route(record, Case(event, record.offset, finding, rule, trace))

    def _decode(self, record: Record) -> Event | Refusal:
        attributes = binary_attributes(record.headers) if record.headers else None
        if attributes is not None:
            return self._decoder.decode_binary(attributes, record.value)
        return _TOMBSTONE if record.value is None else self._decoder.decode(record.value)

    def _route(self, record: Record, case: Case) -> Outcome:
        event = case.event
        copies = self._copier.of(event, context(self._levels[record.topic], case.finding))
        desk = CopyDesk(case, copies, self._formatter)
        so_far = _Gathered(self._remember(record, case.finding))
        decisions = [self._at(route, record, event, copies, desk, so_far) for route in self._routes]
        if event.type == HOOK_FAILURE:
            so_far.outputs += self._audited(record, desk)
        return Outcome(
            tuple(so_far.outputs),
            tuple(decisions) if so_far.matched else self._all_unmatched,
            None,
            event.type,
            tuple(so_far.levels),
            copies.claim,
            case.finding,
            case.violation,
            tuple(so_far.unredacted),
            event.dropped + desk.dropped,
            case.trace,
        )

    def _at(
        self,
        route: RoutePlan,
        record: Record,
        event: Event,
        copies: Copies,
        desk: CopyDesk,
        so_far: _Gathered,
    ) -> Decision:
        """What becomes of an event at one route."""
        if not route.filter.matches(event.tree):
            return "filtered"
        so_far.matched = True
        granted = copies.grant(route.ceiling, redact=route.redact)
        if route.redact and copies.spoilt:
            so_far.unredacted.append(route.name)
        made = desk.outputs(route.topic, granted, route.view, route.format)
        if isinstance(made, Unsaid):
            return "untranslated"
        if not self._fits(made):
            so_far.outputs.append(self._office.copy_too_large(record, route.name))
            return "dead_lettered"
        so_far.outputs += made
        so_far.levels += [granted.level] * len(made)
        return "routed"

    def _audited(self, record: Record, desk: CopyDesk) -> Sequence[Output]:
        """A harness reports its own backend: like our own failures, that must reach every audit
        sink outside the backend's domain, whatever the routes say."""
        if self._failures_topic is None:
            return ()
        audit = desk.outputs(self._failures_topic, _FAILURE_GRANT, _WHOLE, None)
        if isinstance(audit, Unsaid) or not self._fits(audit):
            return (self._office.copy_too_large(record, None),)
        return audit

    def _fits(self, outputs: list[Output]) -> bool:
        for output in outputs:
            # what is in the key and the headers is in the value, so that most need no exact look
            likely = _MOST_AROUND * len(output.value or b"") + _AROUND
            if likely > self._largest and output.size > self._largest:
                return False
        return True

    def _remember(self, record: Record, finding: Finding | None) -> list[Output]:
        """The changes to the pending requests, in the partition of the changelog that moves with
        the record's own. One that doesn't fit is forgotten when this process ends."""
        if finding is None:
            return []
        changelog = self._changelogs[record.topic]
        changes = [
            Output(changelog, change.key, change.value, partition=record.partition)
            for change in finding.changes
        ]
        return [change for change in changes if change.size <= self._largest]


def _all(routes: tuple[RoutePlan, ...], decision: Decision) -> tuple[Decision, ...]:
    return tuple(decision for _ in routes)


def context(ingress: Level, finding: Finding | None) -> Context:
    """What making copies needs of what was found out."""
    if finding is None:
        return Context(ingress)
    return Context(ingress, finding.note, finding.form)
