"""The makers and the exporter of spans that a configuration asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

from hookbus.router import build_bus
from hookbus.router.configuration.config import Config, SinkConfig
from hookbus.router.configuration.plan_traces import MISSING
from hookbus.router.errors import StartupError
from hookbus.router.sinks.requests import header_problems
from hookbus.router.sinks.threads import in_thread
from hookbus.router.telemetry.spans import DeliverySpans, Kind, Recorder, RouterSpans


class Traces:
    """Where spans go while the service runs; without `traces` in the configuration, nowhere, and
    nothing is made."""

    def __init__(
        self,
        config: Config,
        version: str,
        event_types: Collection[str],
        count: Callable[[str, int], None],
    ) -> None:
        """Raises StartupError if what is needed is not installed, or a header can't be used."""
        self._settings = config.traces
        self._exporter = None
        if config.traces is None:
            return
        _check_headers(config)
        try:
            from hookbus.router.telemetry.otlp import OtlpExporter
        except ImportError as error:
            raise StartupError(MISSING) from error
        self._exporter = OtlpExporter(config.traces.otlp, version, count)
        self._recorder = Recorder(
            export=self._exporter.export,
            clock=time.time_ns,
            event_types=frozenset(event_types),
            sample=config.traces.otlp.sample,
        )

    def router(self) -> RouterSpans | None:
        return RouterSpans(self._recorder) if self._exporter is not None else None

    def sink(self, name: str, settings: SinkConfig) -> DeliverySpans | None:
        if self._exporter is None:
            return None
        return DeliverySpans(self._recorder, name, _kind(settings))

    async def close(self, within: float) -> None:
        """Send what is left, for this many seconds at most and no longer than one batch is tried:
        a collector that is away holds up no stop."""
        if self._settings is not None and self._exporter is not None:
            within = min(within, self._settings.otlp.timeout)
            await asyncio.wait([in_thread(self._exporter.close)], timeout=within)


def _check_headers(config: Config) -> None:
    """Read them once, so that a start shows what is missing."""
    headers = config.traces.otlp.headers if config.traces is not None else {}
    values = {
        name: build_bus.read_secret(secret, f"traces.otlp.headers.{name}")
        for name, secret in headers.items()
    }
    for problem in header_problems(values, bearer=False):
        raise StartupError(f"traces.otlp.{problem}")


def _kind(sink: SinkConfig) -> Kind:
    if sink.http is not None:
        return "client"
    return "producer" if sink.topic is not None else "internal"
