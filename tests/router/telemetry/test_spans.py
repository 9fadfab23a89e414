"""Spans: which records have one, and what they say."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from hookbus.codecs.trace_context import TraceContext
from hookbus.policies.faults import Fault
from hookbus.policies.levels import LEVELS
from hookbus.router.pipeline import Outcome
from hookbus.router.telemetry.spans import DeliverySpans, Recorder, RouterSpans, Span
from hookbus.router.types import Headers, Record

TYPES = frozenset({"tool.before"})


def context(number: int, flags: str = "01") -> TraceContext:
    return TraceContext(f"00-{number:032x}-{1:016x}-{flags}")


def recorder(made: list[Span], sample: float = 1.0) -> Recorder:
    """Collects spans; its clock counts 1, 2, 3."""
    ticks = itertools.count(1)
    return Recorder(export=made.append, clock=lambda: next(ticks), event_types=TYPES, sample=sample)


def record(offset: int, headers: Headers = (), partition: int = 0) -> Record:
    return Record("siem", partition, offset, 1000, b"key", b"canary", headers)


def traced(offset: int, partition: int = 0) -> Record:
    return record(offset, context(offset + 1).headers("metadata"), partition)


@given(st.integers(1, 2**128 - 1), st.floats(0, 1))
def test_a_share_of_traces_is_chosen_as_opentelemetry_chooses(number: int, share: float) -> None:
    """So that every part of a system that samples by the same ratio keeps the same traces."""
    theirs = TraceIdRatioBased(share).should_sample(None, number, "any").decision
    ours = recorder([], share).wants(context(number))
    assert ours == (theirs is Decision.RECORD_AND_SAMPLE)


def test_what_its_agent_did_not_sample_has_no_span() -> None:
    """Nor has a record without a context."""
    assert not recorder([]).wants(context(1, "00"))
    assert not recorder([]).wants(context(1, "02"))
    assert not recorder([]).wants(None)


@given(st.lists(st.tuples(
    st.sampled_from(["ce_type", "hookbus-capture", "ce_id", "x"]), st.binary() | st.just(b"full")
)))  # fmt: skip
def test_nothing_that_a_producer_wrote_is_in_a_span(foreign: list[tuple[str, bytes]]) -> None:
    """Whatever the headers of a foreign record hold: types and levels are of closed sets."""
    made: list[Span] = []
    spans = DeliverySpans(recorder(made), "archive", "client")
    spans.delivered(None, [record(1, (*foreign, *context(1).headers("full")))])
    (span,) = made
    assert span.attributes.get("hookbus.event.type", "other") in {*TYPES, "other"}
    assert span.attributes.get("hookbus.capture", "full") in LEVELS
    assert span.attributes.keys() <= {
        "messaging.destination.name", "messaging.destination.partition.id",
        "messaging.kafka.offset", "hookbus.backend", "hookbus.outcome", "hookbus.event.type",
        "hookbus.capture",
    }  # fmt: skip


def test_a_delivery_lasts_from_the_first_attempt_at_the_head_of_its_lane() -> None:
    """Retries belong to it; what comes behind starts anew."""
    made: list[Span] = []
    spans = DeliverySpans(recorder(made), "archive", "client")
    spans.trying(None, traced(1))  # at 1
    spans.trying(None, traced(1))
    spans.trying(None, traced(1))
    spans.delivered(None, [traced(1), traced(2)])  # at 2
    spans.trying(None, traced(3))  # at 3
    spans.given_up(None, traced(3), Fault("route", "timeout"))  # at 4
    assert [(span.start, span.end) for span in made] == [(1, 2), (1, 2), (3, 4)]
    assert [span.failed for span in made] == [False, False, True]
    assert made[2].attributes["hookbus.reason"] == "timeout"


def test_lanes_don_t_share_their_times() -> None:
    """Each partition of a concurrent sink has attempts of its own."""
    made: list[Span] = []
    spans = DeliverySpans(recorder(made), "archive", "client")
    one, other = traced(1), traced(1, partition=1)
    spans.trying(one.home, one)  # at 1
    spans.trying(other.home, other)  # at 2
    spans.delivered(other.home, [other])  # at 3
    spans.delivered(one.home, [one])  # at 4
    assert [(span.start, span.end) for span in made] == [(2, 3), (1, 4)]


def test_a_record_that_was_copied_and_dead_lettered_has_failed() -> None:
    """One route could not write its copy."""
    made: list[Span] = []
    outcome = Outcome(
        (), ("routed", "dead_lettered"), event_type="x.unknown", levels=("none", "redacted"),
        trace=context(1),
    )  # fmt: skip
    RouterSpans(recorder(made)).settled([record(1)], [outcome], 0)
    (span,) = made
    assert span.failed
    assert span.attributes["hookbus.outcome"] == "dead_lettered"
    assert span.attributes["hookbus.routes"] == 1
    assert span.attributes["hookbus.event.type"] == "other"
    assert span.attributes["hookbus.capture"] == "redacted"
