"""What every loop shows: readiness, records in hand, lag, settlements, and a bus that is away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from hookbus.router.configuration.config import Config
from hookbus.router.telemetry.progress import Progress
from hookbus.router.types import Partition

FORWARDER: Final = "forwarder"
"""The loop that moves failures from the journal to the failures topic."""
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds, for what machines do."""


class LoopMetrics:
    """The series of all loops of a configuration."""

    def __init__(self, registry: CollectorRegistry, config: Config) -> None:
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
            ["loop"], buckets=BUCKETS, registry=registry,
        )  # fmt: skip
        self._bus_unavailable = Counter(
            "hookbus_bus_unavailable", "Calls that the bus did not answer", ["loop"],
            registry=registry,
        )  # fmt: skip
        self._journal_pending = Gauge(
            "hookbus_journal_pending", "Hook failures not yet forwarded from the journal",
            registry=registry,
        )  # fmt: skip
        self._ready = Gauge(
            "hookbus_loop_ready",
            "1 if the loop, one of those that this process runs, is a member of its group and the "
            "bus answers",
            ["loop"], registry=registry,
        )  # fmt: skip
        router = ["router"] if config.routes else []
        for loop in (*router, *(f"sink:{name}" for name in config.sinks)):
            self.show(loop)
        if config.sinks:
            self._bus_unavailable.labels(FORWARDER)

    def show(self, loop: str) -> None:
        """Show a loop, from zero on if it is new."""
        self._in_flight.labels(loop)
        self._settle.labels(loop)
        self._bus_unavailable.labels(loop)

    def forget(self, loop: str) -> None:
        """The loop doesn't run any more."""
        for series in (
            self._in_flight, self._settle, self._bus_unavailable, self._lag, self._ready
        ):  # fmt: skip
            series.remove_by_labels({"loop": loop})

    def watch(self, loops: Mapping[str, Progress]) -> None:
        """Show the readiness of these loops, as it is at each look."""
        for loop, progress in loops.items():
            self._ready.labels(loop).set_function(partial(_ready, progress))

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

    def journal_pending(self, count: int) -> None:
        self._journal_pending.set(count)


def _ready(progress: Progress) -> float:
    return float(progress.ready)
