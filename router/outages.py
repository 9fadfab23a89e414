"""Backends that don't take events: since when, how long to wait, and whether a sink has stopped."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

from msgspec import Struct

from hookbus.policies.backoff import delays, patient
from hookbus.policies.failures import Policy
from hookbus.policies.faults import Fault
from hookbus.router.telemetry.progress import Progress
from hookbus.router.telemetry.sink_metrics import SinkMetrics
from hookbus.router.types import Partition

Lane: TypeAlias = Partition | None
"""Records that are delivered in one sequence: a partition's, or all of them."""


class Terms(Struct, frozen=True, kw_only=True):
    """How one sink treats its backend; durations in seconds."""

    name: str
    policy: Policy
    timeout: float
    deadline: float
    first_delay: float
    longest_delay: float
    forward: bool
    """Whether its failures go on from the journal to the failures topic."""


class Outage:
    """From the first route fault on until the backend answers. `since` is a time of the clock."""

    def __init__(self, since: float, waits: Iterator[float]) -> None:
        self.since = since
        self.waits = waits
        self.stopped = False
        """A fail-closed sink stays at its event."""


class Outages:
    """Those of one sink, by lane. Metrics and readiness show them."""

    def __init__(
        self, sink: str, metrics: SinkMetrics, progress: Progress, clock: Callable[[], float]
    ) -> None:
        self._sink = sink
        self._metrics = metrics
        self._progress = progress
        self._clock = clock
        self._outages: dict[Lane, Outage] = {}

    def begin(self, lane: Lane, terms: Terms) -> Outage:
        """The outage of a lane, which goes on if there is one."""
        outage = self._outages.get(lane)
        if outage is None:
            waits = delays(terms.first_delay, terms.longest_delay, random.random)
            outage = self._outages[lane] = Outage(self._clock(), waits)
            self._progress.held_up(lane, by_route_fault=True)
        return outage

    def wait(self, lane: Lane, fault: Fault, terms: Terms) -> float:
        """Seconds before the next attempt, which is not after the deadline."""
        outage = self._outages[lane]
        wait = patient(next(outage.waits), fault.retry_after, terms.longest_delay)
        left = outage.since + terms.deadline - self._clock()
        return min(wait, left) if left > 0 else wait

    def stop(self, outage: Outage) -> None:
        outage.stopped = True
        self._metrics.stopped(self._sink, +1)

    def go_on(self, outage: Outage) -> None:
        """The sink is not stopped any more, if it was."""
        if outage.stopped:
            outage.stopped = False
            self._metrics.stopped(self._sink, -1)

    def end(self, lane: Lane) -> None:
        """The backend answers, or the lane is somebody else's."""
        outage = self._outages.pop(lane, None)
        if outage is not None:
            self._progress.held_up(lane, by_route_fault=False)
            self.go_on(outage)

    def keep(self, assigned: Collection[Partition]) -> None:
        """End those of lanes that are somebody else's by now; `assigned` are ours."""
        for lane in list(self._outages):
            if not assigned or lane not in (None, *assigned):
                self.end(lane)

    def end_all(self) -> None:
        for lane in list(self._outages):
            self.end(lane)
