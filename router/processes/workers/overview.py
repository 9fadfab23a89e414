"""What operators see of all workers: their metrics and their health as those of one service."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, disable_created_metrics

from hookbus.router.configuration.config import Config
from hookbus.router.processes.part import ROUTER, loop_of
from hookbus.router.processes.workers.child import Child
from hookbus.router.processes.workers.merged_metrics import (
    Family,
    Labels,
    Merged,
    counted,
    families,
    in_hand,
    merge,
)
from hookbus.router.telemetry.loop_metrics import FORWARDER

_SILENCE: Final = 30.0
"""Seconds without a report after which a worker is taken to hang."""


class WorkerMetrics:
    """What is counted of the workers themselves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._restarts = Counter(
            "hookbus_worker_restarts", "Workers that ended unasked and were started again",
            ["worker"], registry=registry,
        )  # fmt: skip
        self._abandoned = Counter(
            "hookbus_abandoned",
            "Records that a worker had in hand when it died; they are received again",
            ["loop"], registry=registry,
        )  # fmt: skip
        self._loops: frozenset[str] = frozenset()

    def show(self, workers: Collection[str], loops: Collection[str]) -> None:
        """Show these, from zero on, and forget other loops."""
        for gone in self._loops.difference(loops):
            self._abandoned.remove_by_labels({"loop": gone})
        for loop in loops:
            self._abandoned.labels(loop)
        for worker in workers:
            self._restarts.labels(worker)
        self._loops = frozenset(loops)

    def restarted(self, worker: str) -> None:
        self._restarts.labels(worker).inc()

    def abandoned(self, loop: str, records: float) -> None:
        self._abandoned.labels(loop).inc(records)


class Overview:
    """`children` has the workers that should run, by name, and None for one that doesn't run now.
    `own` is the registry for what the supervisor itself counts, `registry` that for everything.
    `now` is the clock of the children."""

    def __init__(
        self, children: Mapping[str, Child | None], config: Config, now: Callable[[], float]
    ) -> None:
        self._children = children
        self._now = now
        self._gone: tuple[Family, ...] = ()
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double every counter, to tell the start time
        self.own = CollectorRegistry()
        ProcessCollector(registry=self.own)
        self._metrics = WorkerMetrics(self.own)
        self._shown: dict[str, Collection[str]] = {}
        self.show(config, children)
        self.registry = CollectorRegistry()
        self.registry.register(Merged(self._all))

    def show(self, config: Config, workers: Collection[str]) -> None:
        """Show what this configuration has, from zero on, and nothing that it doesn't have."""
        loops = [ROUTER, *map(loop_of, config.sinks)]
        self._metrics.show(workers, loops)
        self._shown = {
            "route": config.routes.keys(), "sink": config.sinks.keys(), "loop": (*loops, FORWARDER),
        }  # fmt: skip
        self._gone = counted(self._gone, self._is_shown)

    def died(self, child: Child) -> None:
        """Keep what a worker had counted as far as it had reported it."""
        if child.report is None:
            return
        metrics = child.report.metrics
        self._gone = merge([self._gone, counted(metrics, self._is_shown)])
        for loop, records in in_hand(metrics).items():
            if self._is_shown((("loop", loop),)):
                self._metrics.abandoned(loop, records)

    def restarted(self, worker: str) -> None:
        self._metrics.restarted(worker)

    def unhealthy(self) -> list[str]:
        """Of a worker that is being started again nothing is said: no restart of all helps it."""
        reasons: list[str] = []
        for name, child in self._running():
            silent = self._now() - child.heard
            if silent > _SILENCE:
                reasons.append(f"{name}: no report for {silent:.0f} s")
            elif child.report is not None:
                reasons += [f"{name}: {reason}" for reason in child.report.unhealthy]
        return reasons

    def unready(self) -> list[str]:
        reasons = [
            f"{name}: not running" for name, child in self._children.items() if child is None
        ]
        for name, child in self._running():
            if child.report is None:
                reasons.append(f"{name}: starting")
            else:
                reasons += [f"{name}: {reason}" for reason in child.report.unready]
        return reasons

    def _running(self) -> Iterator[tuple[str, Child]]:
        return ((name, child) for name, child in self._children.items() if child is not None)

    def _all(self) -> Iterator[Sequence[Family]]:
        yield families(self.own)
        yield self._gone
        for _, child in self._running():
            if child.report is not None:
                yield child.report.metrics

    def _is_shown(self, labels: Labels) -> bool:
        return all(value in self._shown.get(name, (value,)) for name, value in labels)
