"""A collector of traces: an HTTP server that takes OTLP as the real ones do."""

from __future__ import annotations

import gzip
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}


class Received(NamedTuple):
    """A span as it arrived; ids in hexadecimal digits, times in ns."""

    name: str
    kind: str
    trace: str
    parent: str
    start: int
    end: int
    failed: bool
    attributes: Mapping[str, Any]


class Collector:
    """What has arrived. `status` is what it answers, once `gate` is open."""

    def __init__(self) -> None:
        self.status = 200
        self.gate = threading.Event()
        self.gate.set()
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.url = ""

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(body) for body in self.bodies]

    @property
    def spans(self) -> list[Received]:
        return [
            Received(
                span.name,
                KINDS[span.kind],
                span.trace_id.hex(),
                span.parent_span_id.hex(),
                span.start_time_unix_nano,
                span.end_time_unix_nano,
                span.status.code == 2,
                {one.key: getattr(one.value, one.value.WhichOneof("value"))
                 for one in span.attributes},
            )
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]  # fmt: skip


@contextmanager
def collecting(tls: ssl.SSLContext | None = None) -> Iterator[Collector]:
    """A collector on a port of its own; with `tls`, over https."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.paths.append(self.path)
            collector.headers.append({k.lower(): v for k, v in self.headers.items()})
            collector.gate.wait()
            status = collector.status
            if status == 200:
                collector.bodies.append(body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    collector.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
