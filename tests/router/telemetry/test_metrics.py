"""What an operator sees: closed label sets, zeros from the start, and no lag of lost partitions."""

import json
import sys
import time

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from hookbus.policies.faults import Fault
from hookbus.router import build
from hookbus.router.configuration.config_file import parse
from hookbus.router.processes.reload import ReloadMetrics
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.types import Partition, Record
from tests.corpus import events

CONFIG = parse("""
bus: {sqlite: {path: bus.db}}
ingress: {agents: {topics: [in]}}
routes: {siem: {topic: siem}, tools: {topic: tools, match: {type: tool.*}}}
sinks: {com.example.siem: {topics: [siem], policy: fail-open, stdout: {}}}
failures: {topic: failures, journal: journal.db, journal_only: [com.example.siem]}
dead_letters: {topic: dead}
""")
ROUTES = ("siem", "tools")


def started():
    registry = CollectorRegistry()
    return registry, Metrics(registry, CONFIG, build.known_types(), "1.2.3")


def series(registry):
    lines = generate_latest(registry).decode().splitlines()
    return {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines if line[0] != "#"}


def step(pipeline, memory, offset, value):
    return pipeline.step(Record("in", 0, offset, 0, None, value), memory)


def test_no_event_can_add_a_series():
    """Ten thousand strange events leave the exposition as long as it was."""
    registry, metrics = started()
    before = set(series(registry))
    pipeline, memory = build.pipeline(CONFIG, build.decoder(CONFIG)), build.memory(CONFIG)
    event = events.minimal()["hook.failure"]
    for number in range(10_000):
        event["id"] = event["source"] = f"urn:{number}"
        event["harness"]["name"] = f"harness {number}"
        event["failure"] |= {"backendId": f"backend {number}", "reason": f"reason {number}"}
        metrics.router.routed([step(pipeline, memory, number, json.dumps(event).encode())], ROUTES)
        metrics.router.routed([step(pipeline, memory, number, b"%d" % number)], ROUTES)
    assert set(series(registry)) == before
    assert len(generate_latest(registry)) < 200_000


def test_every_series_exists_from_the_start_at_zero():
    """A counter that appears with its first increase hides that increase from rate()."""
    registry, metrics = started()
    before = series(registry)
    assert before['hookbus_route_events_total{decision="dead_lettered",route="siem"}'] == "0.0"
    metrics.router.received("agents", 1)
    metrics.sinks.attempted("com.example.siem", 0, Fault("route", "timeout"), 0.1)
    metrics.sinks.dead_lettered("com.example.siem")
    metrics.sinks.failure_recorded("com.example.siem", "timeout")
    metrics.loops.bus_unavailable("router")
    assert set(series(registry)) == set(before)


def test_the_lag_of_a_partition_goes_with_the_partition():
    """Neither the old value nor a zero: another process shows it now."""
    registry, metrics = started()
    kept, lost = Partition("in", 0), Partition("in", 3)
    metrics.loops.lag("router", {kept: 5, lost: 1200}, ())
    metrics.loops.lag("router", {kept: 4}, (kept, lost))
    shown = {name: value for name, value in series(registry).items() if "hookbus_lag{" in name}
    assert shown == {'hookbus_lag{loop="router",partition="0",topic="in"}': "4.0"}


def test_the_readiness_of_a_loop_is_that_of_the_moment_of_the_look():
    """Not joined, a member, and a member whose bus is away."""
    registry, metrics = started()
    loop = Progress(time.monotonic, 120)
    metrics.loops.watch({"router": loop})

    def shown():
        return {k: v for k, v in series(registry).items() if k.startswith("hookbus_loop_ready")}

    assert shown() == {'hookbus_loop_ready{loop="router"}': "0.0"}
    loop.joined()
    assert shown() == {'hookbus_loop_ready{loop="router"}': "1.0"}
    loop.measured(False)
    assert shown() == {'hookbus_loop_ready{loop="router"}': "0.0"}


def test_a_configuration_without_routes_shows_no_router():
    """An alert for a loop without members must not wait for one that nobody wants."""
    registry = CollectorRegistry()
    config = msgspec.structs.replace(CONFIG, routes={})
    Metrics(registry, config, build.known_types(), "1.2.3")
    loops = {name for name in series(registry) if name.startswith("hookbus_in_flight")}
    assert loops == {'hookbus_in_flight{loop="sink:com.example.siem"}'}


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_the_process_shows_its_memory_its_cpu_time_and_its_start():
    """What capacity is planned with, and how a restart is seen."""
    registry, _ = started()
    names = ("resident_memory_bytes", "cpu_seconds_total", "start_time_seconds")
    assert all(float(series(registry)[f"process_{name}"]) > 0 for name in names)


def test_the_loops_that_are_shown_as_asked_for_are_those_of_the_running_configuration():
    """Also those that no process runs, and no longer those that a reload took away."""
    registry = CollectorRegistry()
    metrics = ReloadMetrics(registry)

    def shown():
        return {name for name in series(registry) if name.startswith("hookbus_config_loop")}

    sink = 'hookbus_config_loop{loop="sink:com.example.siem"}'
    metrics.show(CONFIG)
    assert shown() == {'hookbus_config_loop{loop="router"}', sink}
    metrics.show(msgspec.structs.replace(CONFIG, routes={}))
    assert shown() == {sink}
