"""Every metric of the service, and one function for each thing that happens.

Label values come from closed sets: the configuration, the registered event types and `other`, the
refusal codes, the fault reasons. Nothing of an event is ever a label. Every series exists from the
start, at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from hookbus.codecs.aep_stream import RULES
from hookbus.codecs.verdict import Code
from hookbus.policies.correlation import Classification
from hookbus.policies.faults import Fault, Reason
from hookbus.policies.form_extension import BODIES
from hookbus.policies.levels import LEVELS
from hookbus.router.config import Config
from hookbus.router.finding import Finding
from hookbus.router.pipeline import Decision, Outcome
from hookbus.router.types import Partition

_OTHER = "other"
"""Stands for the AEP types that are not registered."""
_SETTLE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


_HUMAN_BUCKETS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400)


class Metrics:
    """The series of one process; `event_types` is the closed set that the codecs know."""

    def __init__(
        self, registry: CollectorRegistry, config: Config, event_types: Iterable[str], version: str
    ) -> None:
        self._received = Counter(
            "hookbus_received", "Records taken from an ingress", ["ingress"], registry=registry
        )
        self._events = Counter(
            "hookbus_events", "Valid events by type", ["type"], registry=registry
        )
        self._refused = Counter(
            "hookbus_refused", "Records that are no valid event, by code", ["code"],
            registry=registry,
        )  # fmt: skip
        self._decisions = Counter(
            "hookbus_route_events",
            "What became of each record at each route: routed, filtered (another route matched), "
            "unmatched (no route did), dead_lettered, untranslated (its format can't say it)",
            ["route", "decision"], registry=registry,
        )  # fmt: skip
        self._copies = Counter(
            "hookbus_copies", "Copies written, by capture level", ["level"], registry=registry
        )
        self._untranslated = Counter(
            "hookbus_untranslated",
            "Events that a route matched and its format can't say, such as those of no session in "
            "AEP",
            ["route"], registry=registry,
        )  # fmt: skip
        self._dropped = Counter(
            "hookbus_cloudevents_dropped_attributes",
            "Attributes of events that could not pass into a CloudEvent, or out of one",
            registry=registry,
        )
        self._malformed = Counter(
            "hookbus_malformed_declarations",
            "Events whose dev.hookbus.capture extension is malformed and was ignored",
            registry=registry,
        )
        self._exceeded = Counter(
            "hookbus_excess_data",
            "AEP events whose data exceeded the level they declare, and were cut down to it",
            registry=registry,
        )
        self._violations = Counter(
            "hookbus_stream_violations",
            "AEP events that break a rule of their stream, by rule; they are routed all the same",
            ["rule"],
            registry=registry,
        )
        self._bodies = Counter(
            "hookbus_elicitation_bodies",
            "Bodies of elicitations that were at hand, by kind of event and verdict",
            ["kind", "body"],
            registry=registry,
        )
        self._results = Counter(
            "hookbus_elicitation_results",
            "Results of elicitations, by what is known of the request that they answer",
            ["result"],
            registry=registry,
        )
        self._withheld = Counter(
            "hookbus_elicitation_withheld",
            "Answers that are in no copy below full: to a field that asks for a credential, or "
            "content that came with decline, cancel or url mode (unshared)",
            ["why"],
            registry=registry,
        )
        self._redaction_errors = Counter(
            "hookbus_redaction_errors",
            "Events of which a redacting route got the metadata copy, because the pipeline failed",
            ["route"],
            registry=registry,
        )
        self._waited = Histogram(
            "hookbus_elicitation_wait_seconds",
            "From a question to its answer, by the events' own times",
            buckets=_HUMAN_BUCKETS,
            registry=registry,
        )
        self._skewed = Counter(
            "hookbus_elicitation_clock_skew",
            "Answers that are older than their question",
            registry=registry,
        )
        self._in_flight = Gauge(
            "hookbus_in_flight", "Records received and not settled yet", ["loop"],
            registry=registry,
        )  # fmt: skip
        self._lag = Gauge(
            "hookbus_lag", "Records that the loop has not passed, by assigned partition",
            ["loop", "topic", "partition"], registry=registry,
        )  # fmt: skip
        self._settle = Histogram(
            "hookbus_settle_seconds", "Time to publish a batch's outputs and advance the group",
            ["loop"], buckets=_SETTLE_BUCKETS, registry=registry,
        )  # fmt: skip
        self._bus_unavailable = Counter(
            "hookbus_bus_unavailable", "Calls that the bus did not answer", ["loop"],
            registry=registry,
        )  # fmt: skip
        self._delivered = Counter(
            "hookbus_sink_records",
            "Records that a sink is done with: delivered, dead_lettered, or excluded (a hook "
            "failure of its own failure domain)",
            ["sink", "outcome"], registry=registry,
        )  # fmt: skip
        self._faults = Counter(
            "hookbus_sink_faults", "Attempts that failed, by reason", ["sink", "reason"],
            registry=registry,
        )  # fmt: skip
        self._attempt = Histogram(
            "hookbus_delivery_seconds", "Duration of one delivery attempt", ["sink"],
            buckets=_SETTLE_BUCKETS, registry=registry,
        )  # fmt: skip
        self._up = Gauge(
            "hookbus_sink_up", "1 unless the last attempt met a route fault", ["sink"],
            registry=registry,
        )  # fmt: skip
        self._stopped = Gauge(
            "hookbus_sink_stopped", "Partitions at which a fail-closed sink has stopped", ["sink"],
            registry=registry,
        )  # fmt: skip
        self._failures = Counter(
            "hookbus_hook_failures", "Failed deliveries recorded in the journal",
            ["sink", "reason"], registry=registry,
        )  # fmt: skip
        self._journal_pending = Gauge(
            "hookbus_journal_pending", "Hook failures not yet forwarded from the journal",
            registry=registry,
        )  # fmt: skip
        Gauge(
            "hookbus_info", "Always 1; the version is the label", ["version"], registry=registry
        ).labels(version).set(1)
        self._known_types = frozenset(event_types)
        self._start_at_zero(config)

    def _start_at_zero(self, config: Config) -> None:
        for ingress in config.ingress:
            self._received.labels(ingress)
        for event_type in (*self._known_types, _OTHER):
            self._events.labels(event_type)
        for rule in RULES:
            self._violations.labels(rule)
        for code in get_args(Code):
            self._refused.labels(code)
        for level in LEVELS:
            self._copies.labels(level)
        for kind in ("request", "result"):
            for body in BODIES:
                self._bodies.labels(kind, body)
        for result in get_args(Classification):
            self._results.labels(result)
        for why in ("credential", "unshared"):
            self._withheld.labels(why)
        for route in config.routes:
            self._redaction_errors.labels(route)
            self._untranslated.labels(route)
            for decision in get_args(Decision):
                self._decisions.labels(route, decision)
        for sink in config.sinks:
            for outcome in ("delivered", "dead_lettered", "excluded"):
                self._delivered.labels(sink, outcome)
            for reason in get_args(Reason):
                self._faults.labels(sink, reason)
                self._failures.labels(sink, reason)
            self._attempt.labels(sink)
            self._up.labels(sink).set(1)
            self._stopped.labels(sink)
        for loop in ("router", *(f"sink:{name}" for name in config.sinks)):
            self._in_flight.labels(loop)
            self._settle.labels(loop)
            self._bus_unavailable.labels(loop)

    def received(self, ingress: str, count: int) -> None:
        self._received.labels(ingress).inc(count)

    def routed(self, outcome: Outcome, routes: Iterable[str]) -> None:
        """One record was settled with this outcome."""
        if outcome.refusal is not None:
            self._refused.labels(outcome.refusal.code).inc()
        elif outcome.event_type is not None:
            known = outcome.event_type in self._known_types
            self._events.labels(outcome.event_type if known else _OTHER).inc()
        for route, decision in zip(routes, outcome.decisions, strict=True):
            self._decisions.labels(route, decision).inc()
            if decision == "untranslated":
                self._untranslated.labels(route).inc()
        self._dropped.inc(outcome.dropped)
        for level in outcome.levels:
            self._copies.labels(level).inc()
        if outcome.claim == "malformed":
            self._malformed.inc()
        elif outcome.claim == "exceeded":
            self._exceeded.inc()
        if outcome.violation is not None:
            self._violations.labels(outcome.violation).inc()
        for route in outcome.unredacted:
            self._redaction_errors.labels(route).inc()
        if outcome.finding is not None:
            self._found(outcome.finding)

    def _found(self, finding: Finding) -> None:
        if finding.body is not None:
            self._bodies.labels(finding.kind, finding.body).inc()
        if finding.classification is not None:
            self._results.labels(finding.classification).inc()
        self._withheld.labels("credential").inc(finding.credentials)
        self._withheld.labels("unshared").inc(finding.unshared)
        if finding.waited is not None and finding.waited >= 0:
            self._waited.observe(finding.waited)
        elif finding.waited is not None:
            self._skewed.inc()

    def in_flight(self, loop: str, change: int) -> None:
        self._in_flight.labels(loop).inc(change)

    def settled(self, loop: str, seconds: float) -> None:
        self._settle.labels(loop).observe(seconds)

    def bus_unavailable(self, loop: str) -> None:
        self._bus_unavailable.labels(loop).inc()

    def lag(self, loop: str, lag: Mapping[Partition, int], before: Iterable[Partition]) -> None:
        """Show these partitions and forget those of `before` that are not among them."""
        for gone in set(before) - set(lag):
            self._lag.remove(loop, gone.topic, str(gone.number))
        for partition, records in lag.items():
            self._lag.labels(loop, partition.topic, str(partition.number)).set(records)

    def attempted(self, sink: str, delivered: int, fault: Fault | None, seconds: float) -> None:
        """One delivery attempt ended."""
        self._attempt.labels(sink).observe(seconds)
        if delivered:
            self._delivered.labels(sink, "delivered").inc(delivered)
        if fault is not None:
            self._faults.labels(sink, fault.reason).inc()
        self._up.labels(sink).set(0 if fault is not None and fault.kind == "route" else 1)

    def dead_lettered(self, sink: str) -> None:
        self._delivered.labels(sink, "dead_lettered").inc()

    def excluded(self, sink: str, count: int) -> None:
        self._delivered.labels(sink, "excluded").inc(count)

    def stopped(self, sink: str, change: int) -> None:
        self._stopped.labels(sink).inc(change)

    def failure_recorded(self, sink: str, reason: Reason) -> None:
        self._failures.labels(sink, reason).inc()

    def journal_pending(self, count: int) -> None:
        self._journal_pending.set(count)
