"""What an operator sees: closed label sets, zeros from the start, and no lag of lost partitions."""

import json

from prometheus_client import CollectorRegistry, generate_latest

from hookbus.policies.faults import Fault
from hookbus.router import build
from hookbus.router.config_file import parse
from hookbus.router.metrics import Metrics
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
        metrics.router.routed(step(pipeline, memory, number, json.dumps(event).encode()), ROUTES)
        metrics.router.routed(step(pipeline, memory, number, b"%d" % number), ROUTES)
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
