"""The metrics of several processes as those of one: each series once. Pure but for the registry.

Counters and histograms are sums, and keep what a process that is gone had counted. Gauges are of
the processes that run: sums too, except those that are not amounts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

Labels = tuple[tuple[str, str], ...]
Samples = dict[tuple[str, Labels], float]

_COUNTED: Final = frozenset({"counter", "histogram", "summary"})
_LEAST: Final = frozenset(
    {"hookbus_loop_ready", "hookbus_sink_up", "process_start_time_seconds", "process_max_fds"}
)
"""True of all only if it is of each; or the first."""
_MOST: Final = frozenset({"hookbus_lag", "hookbus_info"})
"""The same from each process, or from two while a partition changes hands."""


class Family(Struct, frozen=True, array_like=True):
    """A metric with all its series: sample name and labels -> value."""

    name: str
    help: str
    kind: str
    samples: tuple[tuple[str, Labels, float], ...]


def families(registry: CollectorRegistry) -> tuple[Family, ...]:
    """What a process has counted."""
    return tuple(
        Family(
            metric.name,
            metric.documentation,
            metric.type,
            tuple(
                (sample.name, tuple(sample.labels.items()), float(sample.value))
                for sample in metric.samples
            ),
        )
        for metric in registry.collect()
    )


def merge(several: Iterable[Sequence[Family]]) -> tuple[Family, ...]:
    """The metrics of several processes as those of one."""
    found: dict[str, Family] = {}
    merged: dict[str, Samples] = {}
    for one in several:
        for family in one:
            found.setdefault(family.name, family)
            samples = merged.setdefault(family.name, {})
            join = _joint(family)
            for name, labels, value in family.samples:
                at = (name, labels)
                samples[at] = join(samples[at], value) if at in samples else value
    return tuple(
        Family(name, family.help, family.kind, tuple((*at, v) for at, v in merged[name].items()))
        for name, family in found.items()
    )


def counted(one: Iterable[Family], shown: Callable[[Labels], bool]) -> tuple[Family, ...]:
    """What stays when a process is gone: what it counted, of the series that are shown."""
    return tuple(
        Family(family.name, family.help, family.kind,
               tuple(sample for sample in family.samples if shown(sample[1])))
        for family in one
        if family.kind in _COUNTED
    )  # fmt: skip


def in_hand(one: Iterable[Family]) -> dict[str, float]:
    """How many records each loop of a process had in hand."""
    return {
        dict(labels)["loop"]: value
        for family in one
        if family.name == "hookbus_in_flight"
        for _, labels, value in family.samples
    }


class Merged:
    """A collector for a registry: `several` gives the metrics of each process."""

    def __init__(self, several: Callable[[], Iterable[Sequence[Family]]]) -> None:
        self._several = several

    def collect(self) -> Iterator[Metric]:
        for family in merge(self._several()):
            metric = Metric(family.name, family.help, family.kind)
            for name, labels, value in family.samples:
                metric.add_sample(name, dict(labels), value)
            yield metric


def _joint(family: Family) -> Callable[[float, float], float]:
    if family.name in _LEAST:
        return min
    if family.name in _MOST:
        return max
    return _sum


def _sum(one: float, other: float) -> float:
    return one + other
