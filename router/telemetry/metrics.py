"""Every metric of the service, and one function for each thing that happens.

Label values come from closed sets: the configuration, the registered event types and `other`, the
refusal codes, the fault reasons. Nothing of an event is ever a label. Every series exists from the
start, at zero.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from hookbus.router.configuration.config import Config
from hookbus.router.telemetry.loop_metrics import LoopMetrics
from hookbus.router.telemetry.router_metrics import RouterMetrics
from hookbus.router.telemetry.sink_metrics import SinkMetrics
from hookbus.router.telemetry.span_metrics import SpanMetrics


class Metrics:
    """The series of one process; `event_types` is the closed set that the codecs know."""

    def __init__(
        self, registry: CollectorRegistry, config: Config, event_types: Iterable[str], version: str
    ) -> None:
        self.router = RouterMetrics(registry, config, event_types)
        self.sinks = SinkMetrics(registry, config)
        self.loops = LoopMetrics(registry, config)
        self.spans = SpanMetrics(registry)
        Gauge(
            "hookbus_info", "Always 1; the version is the label", ["version"], registry=registry
        ).labels(version).set(1)
        ProcessCollector(registry=registry)  # memory, CPU, start time; Linux only
