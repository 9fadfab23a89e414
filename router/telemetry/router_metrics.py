"""What the router loop counts: records, events, decisions, elicitations."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram

from hookbus.codecs.aep_stream import RULES
from hookbus.codecs.verdict import Code
from hookbus.policies.correlation import Classification
from hookbus.policies.form_extension import BODIES
from hookbus.policies.levels import LEVELS
from hookbus.router.configuration.config import Config
from hookbus.router.finding import Finding
from hookbus.router.pipeline import Decision, Outcome

_OTHER = "other"
"""Stands for the AEP types that are not registered."""
_HUMAN_BUCKETS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400)


class RouterMetrics:
    """`event_types` is the closed set that the codecs know."""

    def __init__(
        self, registry: CollectorRegistry, config: Config, event_types: Iterable[str]
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
        self._redaction_errors = Counter(
            "hookbus_redaction_errors",
            "Events of which a redacting route got the metadata copy, because the pipeline failed",
            ["route"],
            registry=registry,
        )
        self._elicitations = ElicitationMetrics(registry)
        self._known_types = frozenset(event_types)
        self._routes: frozenset[str] = frozenset()
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
        self.show(config.routes)

    def show(self, routes: Iterable[str]) -> None:
        """Show these routes, the new ones from zero on, and forget all others."""
        wanted = frozenset(routes)
        for gone in self._routes - wanted:
            for series in (self._redaction_errors, self._untranslated, self._decisions):
                series.remove_by_labels({"route": gone})
        for route in wanted - self._routes:
            self._redaction_errors.labels(route)
            self._untranslated.labels(route)
            for decision in get_args(Decision):
                self._decisions.labels(route, decision)
        self._routes = wanted

    def received(self, ingress: str, count: int) -> None:
        self._received.labels(ingress).inc(count)

    def routed(self, outcomes: Sequence[Outcome], routes: Iterable[str]) -> None:
        """Records were settled with these outcomes. Counted together: a counter of Prometheus costs
        more than a dictionary's."""
        for decisions, count in Tally(one.decisions for one in outcomes).items():
            for route, decision in zip(routes, decisions, strict=True):
                self._decisions.labels(route, decision).inc(count)
                if decision == "untranslated":
                    self._untranslated.labels(route).inc(count)
        for levels, count in Tally(one.levels for one in outcomes).items():
            for level in levels:
                self._copies.labels(level).inc(count)
        for event_type, count in Tally(one.event_type for one in outcomes).items():
            if event_type is not None:
                known = event_type in self._known_types
                self._events.labels(event_type if known else _OTHER).inc(count)
        for outcome in outcomes:
            if outcome.refusal is not None:
                self._refused.labels(outcome.refusal.code).inc()
            if outcome.claim is not None:
                (self._malformed if outcome.claim == "malformed" else self._exceeded).inc()
            if outcome.violation is not None:
                self._violations.labels(outcome.violation).inc()
            for route in outcome.unredacted:
                self._redaction_errors.labels(route).inc()
        self._dropped.inc(sum(one.dropped for one in outcomes))
        self._elicitations.found([one.finding for one in outcomes if one.finding is not None])


class ElicitationMetrics:
    """What is found out about elicitations."""

    def __init__(self, registry: CollectorRegistry) -> None:
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
        for kind in ("request", "result"):
            for body in BODIES:
                self._bodies.labels(kind, body)
        for result in get_args(Classification):
            self._results.labels(result)
        for why in ("credential", "unshared"):
            self._withheld.labels(why)

    def found(self, findings: Sequence[Finding]) -> None:
        for (kind, body), count in Tally((one.kind, one.body) for one in findings).items():
            if body is not None:
                self._bodies.labels(kind, body).inc(count)
        for result, count in Tally(one.classification for one in findings).items():
            if result is not None:
                self._results.labels(result).inc(count)
        self._withheld.labels("credential").inc(sum(one.credentials for one in findings))
        self._withheld.labels("unshared").inc(sum(one.unshared for one in findings))
        for finding in findings:
            if finding.waited is not None and finding.waited >= 0:
                self._waited.observe(finding.waited)
            elif finding.waited is not None:
                self._skewed.inc()
