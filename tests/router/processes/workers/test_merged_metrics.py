"""The metrics of several processes as those of one, read as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from hookbus.router.processes.workers.merged_metrics import (
    Family,
    Labels,
    Merged,
    counted,
    families,
    in_hand,
    merge,
)

Shown = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Process:
    """Some metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.received = Counter(
            "hookbus_received", "Records taken", ["ingress"], registry=self.registry
        )
        self.seconds = Histogram(
            "hookbus_settle_seconds", "Time", ["loop"], buckets=(0.1, 1), registry=self.registry
        )
        self.in_flight = Gauge("hookbus_in_flight", "In hand", ["loop"], registry=self.registry)
        self.lag = Gauge("hookbus_lag", "Behind", ["loop", "partition"], registry=self.registry)
        self.ready = Gauge("hookbus_loop_ready", "Ready", ["loop"], registry=self.registry)
        self.info = Gauge("hookbus_info", "Version", ["version"], registry=self.registry)
        self.info.labels("1").set(1)

    @property
    def metrics(self) -> tuple[Family, ...]:
        return families(self.registry)


def shown(several: Sequence[Sequence[Family]]) -> Shown:
    """The series that Prometheus sees of these; each once."""
    registry = CollectorRegistry()
    registry.register(Merged(lambda: several))
    found: Shown = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            at = (sample.name, frozenset(sample.labels.items()))
            assert at not in found
            found[at] = sample.value
    return found


def at(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def everything(_: Labels) -> bool:
    return True


def test_one_process_is_shown_as_it_shows_itself() -> None:
    """With the same help, types and values."""
    one = Process()
    one.received.labels("agents").inc(3)
    one.seconds.labels("router").observe(0.5)
    one.lag.labels("router", "0").set(7)
    registry = CollectorRegistry()
    registry.register(Merged(lambda: [one.metrics]))
    assert generate_latest(registry) == generate_latest(one.registry)


def test_counters_and_histograms_are_sums() -> None:
    one, other = Process(), Process()
    one.received.labels("agents").inc(3)
    other.received.labels("agents").inc(4)
    other.received.labels("more").inc()
    for process, seconds in ((one, 0.05), (other, 0.5), (other, 5)):
        process.seconds.labels("router").observe(seconds)
    found = shown([one.metrics, other.metrics])
    assert found[at("hookbus_received_total", ingress="agents")] == 7
    assert found[at("hookbus_received_total", ingress="more")] == 1
    buckets = [
        found[at("hookbus_settle_seconds_bucket", loop="router", le=le)]
        for le in ("0.1", "1.0", "+Inf")
    ]
    assert buckets == [1, 2, 3]
    assert found[at("hookbus_settle_seconds_count", loop="router")] == 3
    assert found[at("hookbus_settle_seconds_sum", loop="router")] == 5.55


def test_gauges_are_sums_unless_they_are_no_amounts() -> None:
    one, other = Process(), Process()
    for process in (one, other):
        process.in_flight.labels("router").set(5)
        process.lag.labels("router", "1").set(9)  # changing hands at this moment
    one.lag.labels("router", "0").set(2)
    one.ready.labels("router").set(1)
    other.ready.labels("router").set(0)
    found = shown([one.metrics, other.metrics])
    assert found[at("hookbus_in_flight", loop="router")] == 10
    assert found[at("hookbus_lag", loop="router", partition="0")] == 2
    assert found[at("hookbus_lag", loop="router", partition="1")] == 9
    assert found[at("hookbus_loop_ready", loop="router")] == 0
    assert found[at("hookbus_info", version="1")] == 1


def test_what_a_process_counted_stays_when_it_is_gone_and_its_gauges_go_with_it() -> None:
    one, other = Process(), Process()
    one.received.labels("agents").inc(3)
    one.lag.labels("router", "0").set(2)
    one.in_flight.labels("router").set(5)
    other.received.labels("agents").inc(1)
    found = shown([counted(one.metrics, everything), other.metrics])
    assert found[at("hookbus_received_total", ingress="agents")] == 4
    assert [name for name, _ in found if name in ("hookbus_lag", "hookbus_in_flight")] == []
    assert in_hand(one.metrics) == {"router": 5}


def test_what_is_not_shown_any_more_does_not_stay() -> None:
    one = Process()
    one.received.labels("agents").inc(3)
    one.received.labels("gone").inc(3)
    kept = counted(one.metrics, lambda labels: ("ingress", "gone") not in labels)
    assert at("hookbus_received_total", ingress="agents") in shown([kept])
    assert at("hookbus_received_total", ingress="gone") not in shown([kept])


Steps = st.lists(
    st.one_of(
        st.tuples(st.just("count"), st.integers(0, 2), st.integers(1, 1000)),
        st.tuples(st.just("die"), st.integers(0, 2), st.just(0)),
    ),
    max_size=40,
)


@given(steps=Steps)
def test_no_counter_ever_goes_backwards_whoever_dies_and_whenever(
    steps: list[tuple[str, int, int]],
) -> None:
    """And in the end all that was counted is there."""
    processes = [Process() for _ in range(3)]
    gone: tuple[Family, ...] = ()
    before, total = 0.0, 0
    name = at("hookbus_received_total", ingress="agents")
    for step, who, count in steps:
        if step == "count":
            processes[who].received.labels("agents").inc(count)
            total += count
        else:
            gone = merge([gone, counted(processes[who].metrics, everything)])
            processes[who] = Process()
        now = shown([gone, *(process.metrics for process in processes)]).get(name, 0.0)
        assert now >= before
        before = now
    assert before == total


@pytest.mark.parametrize("several", [[], [()]])
def test_no_process_shows_nothing(several: Sequence[Sequence[Family]]) -> None:
    assert shown(several) == {}
