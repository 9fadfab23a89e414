"""Spans of real processes at a real collector: in the agent's trace, without content, and never in
the way of a delivery."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hookbus.codecs.trace_context import TraceContext
from hookbus.router import build_bus
from hookbus.router.configuration import config_file
from hookbus.router.configuration.config_traces import Otlp
from hookbus.router.configuration.units import Duration
from hookbus.router.telemetry.otlp import OtlpExporter
from hookbus.router.telemetry.spans import Span
from hookbus.router.types import Headers, Output
from tests.brokers import free_port
from tests.certificates import Authority
from tests.collector import Collector, collecting
from tests.corpus import events
from tests.official import official_server
from tests.processes import (
    BusKind,
    Processes,
    Service,
    Setup,
    command,
    journal,
    lines,
    stream,
    until,
)

CANARY = "canary"
CLOSED = {
    "messaging.destination.name",
    "messaging.destination.partition.id",
    "messaging.kafka.offset",
    "hookbus.event.type",
    "hookbus.routes",
    "hookbus.outcome",
    "hookbus.backend",
    "hookbus.reason",
    "hookbus.capture",
}


def traced(number: int, flags: str = "01", state: str = f"vendor={CANARY}") -> Headers:
    """The headers of a record in the trace of this number, in the span of the same one."""
    parent = f"00-{number:032x}-{number:016x}-{flags}"
    return (("traceparent", parent.encode()), ("tracestate", state.encode()))


def send(setup: Setup, values: list[tuple[bytes, Headers]]) -> None:
    """Append records with headers to the ingress."""

    async def append() -> None:
        bus = build_bus.bus(config_file.load(setup.file))
        try:
            await bus.open([setup.topic("in")])
            await bus.publish(
                [Output(setup.topic("in"), b"key", value, headers) for value, headers in values]
            )
        finally:
            await bus.close()

    asyncio.run(append())


def settled(service: Service, sink: str, count: int) -> None:
    """Wait until a sink is done with so many records."""
    until(
        lambda: (
            sum(service.metrics().by("hookbus_sink_records_total", "outcome", sink=sink).values())
            == count
        ),
        lambda: f"{sink} done; {service.stderr}",
    )


def to(setup: Setup, collector: Collector, **settings: Any) -> None:
    """Trace to a collector, which may be slow to answer unless the settings say otherwise."""
    setup.tree["traces"] = {"otlp": {"endpoint": collector.url, "timeout": "60s", **settings}}


def spans_by_trace(collector: Collector, number: int) -> dict[str, Any]:
    return {span.name: span for span in collector.spans if span.trace == f"{number:032x}"}


def test_router_and_sinks_have_spans_in_the_trace_of_the_agent(
    setup: Setup, processes: Processes
) -> None:
    """Children of the agent's span, with a closed set of attributes and no byte of content; also
    of an event that a backend fails, of the failure that records it, and of refused input."""
    with collecting() as collector, official_server() as server:
        to(setup, collector)
        setup.route("siem")
        setup.route("archive", capture="full")
        setup.file_sink("audit", "siem", "failures")
        setup.journal_only("audit")
        setup.sink("backend", "siem", http={"url": server.url("/siem")})
        setup.sink(
            "broken", "archive", policy="fail-open", deadline="50ms",
            http={"url": f"http://127.0.0.1:{free_port()}"}, retry={"initial": "10ms"},
        )  # fmt: skip
        setup.write()
        event = events.maximal()["tool.before"]
        assert CANARY in json.dumps(event)
        send(setup, [
            (json.dumps(event).encode(), traced(1)),
            (b'{"canary": "no event"}', traced(2)),
            (stream(1)[0], ()),
        ])  # fmt: skip
        service = processes.run(setup)
        settled(service, "broken", 2)
        settled(service, "backend", 2)
        settled(service, "audit", 4)
        service.stop()
    ours = spans_by_trace(collector, 1)
    ingress, siem = setup.topic("in"), setup.topic("siem")
    router, delivered = ours[f"process {ingress}"], ours["deliver backend"]
    assert set(ours) == {
        router.name, "deliver backend", "deliver broken", "deliver audit"
    }  # fmt: skip
    assert {span.parent for span in ours.values()} == {f"{1:016x}"}
    assert router.kind == "consumer"
    assert dict(router.attributes) == {
        "messaging.destination.name": ingress,
        "messaging.destination.partition.id": router.attributes[
            "messaging.destination.partition.id"
        ],
        "messaging.kafka.offset": 0,
        "hookbus.event.type": "tool.before",
        "hookbus.outcome": "routed",
        "hookbus.routes": 2,
        "hookbus.capture": "full",
    }
    assert delivered.kind == "client"
    assert delivered.attributes["messaging.destination.name"] == siem
    assert delivered.attributes["hookbus.backend"] == "backend"
    assert delivered.attributes["hookbus.outcome"] == "delivered"
    assert delivered.attributes["hookbus.capture"] == "metadata"
    # What is published may be delivered before its router knows that it is settled.
    assert router.start <= router.end
    assert router.start <= delivered.start <= delivered.end
    broken = ours["deliver broken"]
    assert broken.failed
    assert broken.attributes["hookbus.outcome"] == "dead_lettered"
    assert broken.attributes["hookbus.reason"] == "connection_failed"
    refused = spans_by_trace(collector, 2)[router.name]
    assert refused.failed
    assert refused.attributes["hookbus.reason"] == "unknown_protocol"
    assert {span.trace for span in collector.spans} == {f"{1:032x}", f"{2:032x}"}
    assert {name for span in collector.spans for name in span.attributes} <= CLOSED
    assert not any(CANARY.encode() in body for body in collector.bodies)
    assert set(collector.paths) == {"/v1/traces"}
    (failure, *_) = journal(setup, "failures")
    assert dict(failure.headers)["traceparent"] == dict(traced(1))["traceparent"]


@pytest.fixture
def local(tmp_path: Path) -> Setup:
    """A setup on the embedded bus, with one route into one file."""
    setup = Setup(BusKind("sqlite"), tmp_path, partitions=1)
    setup.route("siem")
    setup.file_sink("siem", "siem")
    setup.journal_only("siem")
    return setup


@contextmanager
def silent() -> Iterator[Collector]:
    """A collector that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        collector = Collector()
        collector.url = f"http://127.0.0.1:{server.getsockname()[1]}"
        yield collector


@contextmanager
def absent() -> Iterator[Collector]:
    """One that isn't there."""
    collector = Collector()
    collector.url = f"http://127.0.0.1:{free_port()}"
    yield collector


@contextmanager
def refusing() -> Iterator[Collector]:
    """One that takes nothing."""
    with collecting() as collector:
        collector.status = 400
        yield collector


def test_each_worker_exports_its_own_spans(local: Setup, processes: Processes) -> None:
    """Counted as one service's."""
    with collecting() as collector:
        to(local, collector)
        local.tree["workers"] = 2
        local.write()
        send(local, [(value, traced(n + 1)) for n, value in enumerate(stream(20))])
        service = processes.run(local)
        until(
            lambda: service.metrics().by("hookbus_spans_total", "result") == {"exported": 40},
            lambda: f"all spans exported; {service.stderr}",
        )
        service.stop()
    assert len({(span.trace, span.name) for span in collector.spans}) == 40


PARENT = TraceContext(f"00-{1:032x}-{1:016x}-01")


class Counts(Counter[str]):
    """What an exporter says became of its spans."""

    def add(self, result: str, number: int) -> None:
        self[result] += number


def test_a_slow_collector_fills_a_bounded_queue_and_every_span_is_counted() -> None:
    """Beyond the bound spans are dropped at once; exported and dropped ones add up."""
    counts = Counts()
    with collecting() as collector:
        collector.gate.clear()
        exporter = OtlpExporter(Otlp(endpoint=collector.url, timeout=Duration(60)), "0", counts.add)
        for number in range(20_000):
            exporter.export(Span("deliver a", "client", PARENT, number, number, {}, failed=False))
        accepted = 20_000 - counts["dropped"]
        assert 8192 <= accepted <= 8192 + 512  # those that wait, and the batch that is sent
        collector.gate.set()
        exporter.close()
    assert counts == {"dropped": 20_000 - accepted, "exported": accepted}
    assert len(collector.spans) == accepted


def test_spans_go_over_tls_to_a_collector_that_is_trusted_and_to_no_other(tmp_path: Path) -> None:
    """By the authorities of `ca_file`; with others, or those that are public, nothing is said."""
    folders = [tmp_path / name for name in ("ours", "other")]
    for folder in folders:
        folder.mkdir()
    ours, other = map(Authority, folders)
    counts = Counts()
    with collecting(ours.server("collector", of="IP:127.0.0.1")) as collector:
        for authorities, tried in ((ours.file, 60), (other.file, 1), (None, 1)):
            settings = Otlp(endpoint=collector.url, ca_file=authorities, timeout=Duration(tried))
            exporter = OtlpExporter(settings, "0", counts.add)
            exporter.export(Span("deliver a", "client", PARENT, 0, 1, {}, failed=False))
            exporter.close()
    assert counts == {"exported": 1, "failed": 2}
    assert len(collector.spans) == 1


@pytest.mark.parametrize("broken", [absent, silent, refusing])
def test_a_broken_collector_changes_nothing_in_delivery(
    local: Setup, processes: Processes, broken: Callable[[], AbstractContextManager[Collector]]
) -> None:
    """Everything is delivered, the loss is counted and said once, and the stop is an orderly
    one."""
    with broken() as collector:
        to(local, collector, timeout="500ms")
        local.write()
        send(local, [(value, traced(n + 1)) for n, value in enumerate(stream(50))])
        service = processes.run(local)
        settled(service, "siem", 50)
        lost = until(
            lambda: service.metrics().by("hookbus_spans_total", "result").get("failed"),
            lambda: f"spans lost; {service.stderr}",
        )
        assert lost <= 100
        assert service.get("/healthz")[0] == service.get("/readyz")[0] == 200
        service.stop()
    assert len(lines(local.folder / "siem.jsonl")) == 50
    troubles = [line["message"] for line in service.logs if line["level"] != "info"]
    assert troubles == ["spans can't be exported"]


def test_a_malformed_or_unsampled_context_makes_no_span(local: Setup, processes: Processes) -> None:
    """The events are delivered as if there were none."""
    with collecting() as collector:
        to(local, collector)
        local.write()
        contexts = [
            traced(0), traced(1, flags="00"), traced(2, flags="zz"),
            (("traceparent", b"\xff" * 9999),), (("tracestate", b"a=1"),),
        ]  # fmt: skip
        send(local, [*zip(stream(5), contexts, strict=True), (stream(6)[5], traced(7))])
        service = processes.run(local)
        settled(service, "siem", 6)
        service.stop()
    assert len(lines(local.folder / "siem.jsonl")) == 6
    assert {span.trace for span in collector.spans} == {f"{7:032x}"}


def test_the_headers_for_the_collector_are_secrets_that_may_change(
    local: Setup, processes: Processes
) -> None:
    """They are read for each request; one that can't be read refuses the start."""
    token = local.folder / "token"
    with collecting() as collector:
        to(local, collector, headers={"x-api-key": {"file": str(token)}})
        local.write()
        command("plan", "-c", str(local.file))
        refused = processes.run(local)
        assert refused.wait() == 3
        assert "traces.otlp.headers.x-api-key" in refused.stderr
        token.write_text("first\n")
        service = processes.run(local)
        send(local, [(stream(1)[0], traced(1))])
        until(lambda: collector.headers, "the first spans")
        token.write_text("second\n")
        send(local, [(stream(2)[1], traced(2))])
        settled(service, "siem", 2)
        service.stop()
    keys = [headers["x-api-key"] for headers in collector.headers]
    assert (keys[0], keys[-1]) == ("first", "second")
    assert "first" not in service.stderr


def test_without_opentelemetry_a_configuration_with_traces_is_refused(local: Setup) -> None:
    """By `plan` and by `run`, with what to install; one without traces is not."""
    program = (
        "import sys; sys.modules['opentelemetry.sdk'] = None\n"
        "from hookbus.router.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    to(local, Collector(), endpoint="http://localhost:4318")
    for arguments in (["plan"], ["run", "--only", "router"]):
        done = _python(program, *arguments, "-c", str(local.write()))
        assert (done.returncode, done.stderr.decode()) == (
            2,
            "traces.otlp: needs OpenTelemetry, which is not installed; install hookbus[traces]\n",
        )
    del local.tree["traces"]
    assert _python(program, "plan", "-c", str(local.write())).returncode == 0


def test_nothing_of_opentelemetry_is_loaded_without_traces() -> None:
    """It costs start time and memory."""
    program = (
        "import sys, hookbus.router.cli, hookbus.router.processes.service\n"
        "sys.exit('opentelemetry' in sys.modules)"
    )
    assert _python(program).returncode == 0


def _python(program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True)
