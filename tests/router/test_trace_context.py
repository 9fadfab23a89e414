"""The trace of an event on its way through the router: carried, and never trusted."""

import json

import pytest

from hookbus.codecs.headers import read_headers
from hookbus.router import build
from hookbus.router.configuration.config_file import parse
from hookbus.router.types import Record
from tests.corpus import aep_events, events

LEVELS = ("none", "metadata", "redacted", "full")
ROUTES = "\n".join(f"  {level}: {{topic: {level}, capture: {level}}}" for level in LEVELS)
CONFIG = parse(f"""
bus: {{sqlite: {{path: bus.db}}}}
ingress: {{agents: {{topics: [in]}}}}
routes:
{ROUTES}
  cloud: {{topic: cloud, capture: full, format: cloudevents}}
  least: {{topic: least, capture: none, format: cloudevents}}
failures: {{topic: failures, journal: journal.db}}
dead_letters: {{topic: dead}}
""")
PIPELINE = build.pipeline(CONFIG, build.decoder(CONFIG))
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
STATE = "vendor=canary"
HEADERS = (("traceparent", PARENT.encode()), ("tracestate", STATE.encode()))
AHP = events.maximal()["tool.before"]
AEP = {**aep_events.maximal("tool.requested"), "capture": "full"}


def step(value, headers=()):
    value = value if isinstance(value, bytes) else json.dumps(value).encode()
    return PIPELINE.step(Record("in", 0, 7, 1000, b"key", value, headers), build.memory(CONFIG))


def traces(outcome):
    """What each topic's record says of the trace."""
    found = {}
    for output in outcome.outputs:
        headers = dict(output.headers)
        found[output.topic] = (headers.get("traceparent"), headers.get("tracestate"))
    return found


@pytest.mark.parametrize("event", [AHP, AEP], ids=["ahp", "aep"])
def test_the_context_of_a_record_is_in_the_headers_of_every_copy(event):
    """The ids at every level, the state at full alone."""
    event = {name: value for name, value in event.items() if name != "traceparent"}
    found = traces(step(event, HEADERS))
    for level in LEVELS[:-1]:
        assert found[level] == (PARENT.encode(), None)
    assert found["full"] == (PARENT.encode(), STATE.encode())


def test_an_event_without_a_context_has_no_headers_of_one():
    """Nothing is made up."""
    assert set(traces(step(AHP)).values()) == {(None, None)}


def test_the_trace_that_an_event_names_itself_counts_before_that_of_its_record():
    """A shipper that copies records has a trace of its own, which is not the agent's."""
    outcome = step({**AEP, "traceparent": OTHER, "tracestate": "a=1"}, HEADERS)
    assert traces(outcome)["full"] == (OTHER.encode(), b"a=1")
    assert outcome.trace.parent == OTHER


def test_a_malformed_context_of_an_event_gives_way_to_that_of_its_record():
    """AEP's schema lets ids of zeros through; the trace context has none."""
    zeros = f"00-{'0' * 32}-{'0' * 16}-01"
    assert traces(step({**AEP, "traceparent": zeros}, HEADERS))["full"][0] == PARENT.encode()


@pytest.mark.parametrize("value", [b"", b"00", b"\xff" * 55, PARENT.upper().encode(), b"0" * 9999])
def test_a_malformed_context_is_ignored(value):
    """The event is routed as if there were none."""
    outcome = step(AHP, (("traceparent", value), ("tracestate", STATE.encode())))
    assert outcome.decisions == ("routed",) * 6
    assert set(traces(outcome).values()) == {(None, None)}


def test_a_cloudevent_of_an_ahp_event_carries_the_context_in_and_out():
    """By CloudEvents' own extension, and in the headers."""
    cloud = json.loads(outputs(step(AHP, HEADERS))["cloud"].value)
    assert (cloud["traceparent"], cloud["tracestate"]) == (PARENT, STATE)
    again = step(cloud)
    assert traces(again)["full"] == (PARENT.encode(), STATE.encode())
    assert json.loads(outputs(again)["cloud"].value) == cloud


def test_a_cloudevent_below_full_has_the_parent_alone():
    """Of the envelope as of the headers."""
    cloud = json.loads(outputs(step(AHP, HEADERS))["least"].value)
    assert cloud["traceparent"] == PARENT
    assert "tracestate" not in cloud


def test_a_binary_cloudevent_carries_the_context_in():
    """In the headers `ce_traceparent` and `ce_tracestate`."""
    attributes = {
        "specversion": "1.0", "id": AHP["id"], "source": AHP["source"],
        "type": f"org.agenthooksprotocol.{AHP['type']}", "traceparent": PARENT,
        "tracestate": STATE,
    }  # fmt: skip
    headers = tuple((f"ce_{name}", value.encode()) for name, value in attributes.items())
    assert traces(step(AHP, headers))["full"] == (PARENT.encode(), STATE.encode())


def test_a_dead_letter_is_in_the_trace_of_what_was_refused():
    """The ids alone: dead letters hold no content."""
    outcome = step(b"{", HEADERS)
    assert traces(outcome) == {"dead": (PARENT.encode(), None)}
    assert outcome.trace.parent == PARENT


def test_a_failure_reported_by_a_harness_stays_in_its_trace():
    """The copy for the audit sinks too."""
    found = traces(step(events.maximal()["hook.failure"], HEADERS))
    assert found["failures"] == (PARENT.encode(), None)


def test_the_headers_of_a_traced_record_are_still_those_of_its_event():
    """Consumers filter by them as before."""
    made = outputs(step(AHP, HEADERS))["full"]
    assert read_headers(made.headers).id == AHP["id"]


def outputs(outcome):
    return {output.topic: output for output in outcome.outputs}
