"""What the sink loops count: attempts, records, failures."""

from __future__ import annotations

from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from hookbus.policies.faults import Fault, Reason
from hookbus.router.configuration.config import Config
from hookbus.router.telemetry.loop_metrics import BUCKETS


class SinkMetrics:
    """The series of all sinks of a configuration."""

    def __init__(self, registry: CollectorRegistry, config: Config) -> None:
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
            buckets=BUCKETS, registry=registry,
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
        for sink in config.sinks:
            self.show(sink)

    def show(self, sink: str) -> None:
        """Show a sink, from zero on if it is new."""
        for outcome in ("delivered", "dead_lettered", "excluded"):
            self._delivered.labels(sink, outcome)
        for reason in get_args(Reason):
            self._faults.labels(sink, reason)
            self._failures.labels(sink, reason)
        self._attempt.labels(sink)
        self._up.labels(sink).set(1)
        self._stopped.labels(sink)

    def forget(self, sink: str) -> None:
        """The sink doesn't run any more."""
        for series in (
            self._delivered, self._faults, self._failures, self._attempt, self._up, self._stopped
        ):  # fmt: skip
            series.remove_by_labels({"sink": sink})

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
