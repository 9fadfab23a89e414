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
from hookbus.codecs.carried import binary_attributes
from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.trace_context import TraceContext, of_headers
from hookbus.codecs.verdict import Refusal
from hookbus.policies.copies import Claim, Context, Copier
from hookbus.policies.correlation import Moment
from hookbus.policies.failures import HOOK_FAILURE
from hookbus.policies.levels import Grant, Level
from hookbus.router.copy_desk import Case, CopyDesk, TooLarge
from hookbus.router.correlation import CORRELATED, Correlator
from hookbus.router.dead_letters import DeadLetterOffice
from hookbus.router.finding import Finding
from hookbus.router.formats import Formatter
from hookbus.router.memory import Memory
from hookbus.router.orders import Orders, RoutePlan
from hookbus.router.types import Output, Record

Decision = Literal["routed", "filtered", "unmatched", "dead_lettered", "untranslated"]
"""What became of one event at one route; `unmatched` matched no route at all, and `untranslated`
can't be said in the route's format."""

_TOMBSTONE: Final = Refusal("invalid_json")
_FAILURE_GRANT: Final = Grant("metadata", rewrite=True)


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
        self._orders = Orders(routes)
        self._audit = self._orders.audit(_FAILURE_GRANT)
        self._office = office
        self._contexts = {topic: Context(level) for topic, level in levels.items()}
        self._changelogs = changelogs
        self._failures_topic = failures_topic
        self._largest = largest
        self._all_dead = _all(routes, "dead_lettered")
        self._all_unmatched = _all(routes, "unmatched")
        self._all_filtered = list(_all(routes, "filtered"))

    def too_large(self, record: Record) -> Outcome:
        """For a record with a copy that the bus refuses although it is within the limit."""
        letter = self._office.without_bytes().copy_too_large(record, None)
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
        copies = self._copier.of(event, self._context(record.topic, case.finding))
        desk = CopyDesk(case, copies, self._formatter, self._largest)
        outputs = [] if case.finding is None else self._remember(record, case.finding)
        decisions: list[Decision] = []
        levels: list[Level] = []
        unredacted: list[str] = []
        for route, asked in self._orders.of(event.protocol, copies.level):
            if not route.filter.matches(event.tree):
                decisions.append("filtered")
                continue
            order = asked
            if asked.spare is not None and not copies.redacts(asked.granted):
                order = asked.spare
                unredacted.append(route.name)
            made = desk.filled(order)
            if isinstance(made, list):
                for value, headers in made:
                    outputs.append(Output(route.topic, desk.key, value, headers))
                    levels.append(order.granted.level)
                decisions.append("routed")
            elif isinstance(made, TooLarge):
                outputs.append(self._office.copy_too_large(record, route.name))
                decisions.append("dead_lettered")
            else:
                decisions.append("untranslated")
        matched = decisions != self._all_filtered
        if event.type == HOOK_FAILURE:
            outputs += self._audited(record, desk)
        return Outcome(
            tuple(outputs),
            tuple(decisions) if matched else self._all_unmatched,
            None,
            event.type,
            tuple(levels),
            copies.claim,
            case.finding,
            case.violation,
            tuple(unredacted),
            event.dropped + desk.dropped,
            case.trace,
        )

    def _context(self, topic: str, finding: Finding | None) -> Context:
        plain = self._contexts[topic]
        return plain if finding is None else context(plain.ingress, finding)

    def _audited(self, record: Record, desk: CopyDesk) -> Sequence[Output]:
        """A harness reports its own backend: like our own failures, that must reach every audit
        sink outside the backend's domain, whatever the routes say."""
        if self._failures_topic is None:
            return ()
        made = desk.filled(self._audit)
        if not isinstance(made, list):
            return (self._office.copy_too_large(record, None),)
        return [Output(self._failures_topic, desk.key, *each) for each in made]

    def _remember(self, record: Record, finding: Finding) -> list[Output]:
        """The changes to the pending requests, in the partition of the changelog that moves with
        the record's own. One that doesn't fit is forgotten when this process ends."""
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
