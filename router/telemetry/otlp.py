"""The export of spans to a collector, by OpenTelemetry's SDK and OTLP over HTTP.

Nothing here is global: the provider is this object's own. A thread of the SDK sends batches; what
it can't send is lost and counted, and so is what its bounded queue has no room for. Whoever
delivers events never waits for it, and learns nothing of its troubles.

OpenTelemetry's own environment variables apply where the configuration says nothing, such as
`OTEL_RESOURCE_ATTRIBUTES`; proxies and .netrc files don't.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from hookbus.router.configuration.config_traces import Otlp
from hookbus.router.telemetry.spans import Span

_log = logging.getLogger("hookbus.traces")

Result = Literal["exported", "failed", "dropped"]
"""What became of spans: dropped ones found the queue full."""

_QUEUE: Final = 8192
_BATCH: Final = 512
_DELAY_MS: Final = 1000
_PATH: Final = "/v1/traces"


class OtlpExporter:
    """Sends spans to one collector; `version` is that of hookbus, `count` is told what became of
    them, from any thread. Its thread runs from construction to `close`."""

    def __init__(self, settings: Otlp, version: str, count: Callable[[Result, int], None]) -> None:
        self._count = count
        self._made = 0
        self._watched = _Watched(_exporter(settings), count)
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,  # who makes spans has chosen
            resource=Resource.create({"service.name": "hookbus", "service.version": version}),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(
                self._watched,
                max_queue_size=2 * _QUEUE,
                max_export_batch_size=_BATCH,
                schedule_delay_millis=_DELAY_MS,
            )
        )
        self._tracer = self._provider.get_tracer("hookbus", version)

    def export(self, span: Span) -> None:
        """Queue a span; with a full queue it is dropped before anything is made of it."""
        if self._made - self._watched.taken >= _QUEUE:
            self._count("dropped", 1)
            return
        self._made += 1
        made = self._tracer.start_span(
            span.name,
            _context(span),
            _KINDS[span.kind],
            span.attributes,
            start_time=span.start,
        )
        if span.failed:
            made.set_status(StatusCode.ERROR)
        made.end(span.end)

    def close(self) -> None:
        """Send what is queued. Blocks for as long as the collector makes it; whoever can't wait
        leaves it alone in a thread."""
        self._provider.shutdown()


def _context(span: Span) -> Context:
    parent = SpanContext(
        int(span.parent.trace_id, 16),
        int(span.parent.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(parent), Context())


_KINDS: Final[Mapping[str, SpanKind]] = {
    "consumer": SpanKind.CONSUMER,
    "client": SpanKind.CLIENT,
    "producer": SpanKind.PRODUCER,
    "internal": SpanKind.INTERNAL,
}


def _exporter(settings: Otlp) -> OTLPSpanExporter:
    session = requests.Session()
    session.trust_env = False
    session.auth = _Headers(settings)
    return OTLPSpanExporter(
        endpoint=settings.endpoint.rstrip("/").removesuffix(_PATH) + _PATH,
        certificate_file=settings.ca_file,
        timeout=settings.timeout,
        compression=Compression.Gzip,
        session=session,
    )


class _Headers(requests.auth.AuthBase):
    """Reads the secret headers for each request, so that rotated ones are taken up. One that can't
    be read fails the request."""

    def __init__(self, settings: Otlp) -> None:
        self._headers = settings.headers

    def __call__(self, request: Any) -> Any:
        request.headers.update({name: secret.read() for name, secret in self._headers.items()})
        return request


class _Watched(SpanExporter):
    """Counts what the exporter does, and says once when it begins to fail and to work again."""

    def __init__(self, exporter: SpanExporter, count: Callable[[Result, int], None]) -> None:
        self._exporter = exporter
        self._count = count
        self._failing = False
        self.taken = 0
        """Spans that left the queue."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        result = SpanExportResult.FAILURE
        with suppress(Exception):  # whatever it is, only spans are lost
            result = self._exporter.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        self._count("failed" if failed else "exported", len(spans))
        if failed != self._failing:
            self._failing = failed
            _log.warning("spans can't be exported" if failed else "spans are exported again")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
