"""The metrics reference, from the metrics that a process registers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector

from hookbus.router import build
from hookbus.router.configuration.config_file import parse
from hookbus.router.processes.reload import ReloadMetrics
from hookbus.router.processes.workers.overview import WorkerMetrics
from hookbus.router.telemetry.metrics import Metrics
from hookbus.schemas import loader

_CONFIG: Final = """
bus: {sqlite: {path: bus.db}}
ingress: {"<ingress>": {topics: [in]}}
routes: {"<route>": {topic: out}}
sinks: {"<sink>": {topics: [out], policy: fail-open, stdout: {}}}
failures: {topic: failures, journal: journal.db, journal_only: ["<sink>"]}
dead_letters: {topic: dead}
"""
_VERSION: Final = "<version>"

_HEAD: Final = """\
# Metrics reference

Generated from the code by `make docs`; change the metrics there.

`/metrics` on `metrics.listen` serves these in Prometheus' text format. Labels have closed sets of
values: names from the configuration (`<ingress>`, `<route>`, `<sink>`), and tokens that are listed
here. Nothing of an event is ever a label. Every series exists from the start, at zero, but those of
assigned partitions (`hookbus_lag`), which come and go with them. The process's own memory, CPU and
start are there as every Prometheus client tells them (`process_…`).

| metric | type | unit | labels | meaning |
|---|---|---|---|---|"""

_OPEN: Final = {"topic": "a topic that the loop reads", "partition": "its number"}
"""Labels without a series at the start."""
_MOST: Final = 40
"""Values that are listed in the table."""


def page() -> str:
    registry, config = CollectorRegistry(), parse(_CONFIG)
    Metrics(registry, config, build.known_types(), _VERSION)
    ReloadMetrics(registry).show(config)
    WorkerMetrics(registry).show(["router-<n>", "sinks"], ["router", "sink:<sink>"])
    ours = [one for one in registry._collector_to_names if not isinstance(one, ProcessCollector)]
    collectors = sorted(ours, key=lambda one: one._name)
    return "\n".join([_HEAD, *map(_row, collectors), "", *_buckets(collectors), *_types(), ""])


def _row(collector: Any) -> str:
    (family,) = collector.describe()
    name = f"{family.name}_total" if family.type == "counter" else family.name
    unit = "seconds" if "_seconds" in name else ""
    labels = "; ".join(f"`{label}`: {_values(collector, label)}" for label in collector._labelnames)
    return f"| `{name}` | {family.type} | {unit} | {labels} | {family.documentation} |"


def _values(collector: Any, label: str) -> str:
    (family,) = collector.collect()
    found = {sample.labels[label]: None for sample in family.samples if label in sample.labels}
    if not found:
        return _OPEN.get(label) or ", ".join(f"`{loop}`" for loop in ("router", "sink:<sink>"))
    if len(found) > _MOST:
        return f"{len(found)} values, see below"
    return ", ".join(f"`{value}`" for value in found)


def _buckets(collectors: list[Any]) -> Iterator[str]:
    yield "## Buckets\n"
    yield "Upper bounds of the histograms' buckets, in seconds; the last bucket has none.\n"
    for collector in collectors:
        if isinstance(collector, Histogram):
            bounds = ", ".join(f"{bound:g}" for bound in collector._kwargs["buckets"])
            yield f"- `{collector._name}`: {bounds}"
    yield ""


def _types() -> Iterator[str]:
    yield "## Event types\n"
    yield "The values of the label `type`; `other` stands for AEP types that are not registered.\n"
    for protocol, types in (
        ("AHP", loader.event_types(loader.load())),
        ("AEP", loader.aep_types(loader.load_aep())),
    ):
        yield f"- {protocol}: {', '.join(f'`{name}`' for name in types)}"
