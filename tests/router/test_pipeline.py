"""One record in, records out."""

import base64
import json

import pytest

from hookbus.codecs.aep_stream import Streams
from hookbus.codecs.headers import read_headers
from hookbus.policies.correlation import PendingRequests
from hookbus.router import build
from hookbus.router.configuration.config_file import parse
from hookbus.router.memory import Memory
from hookbus.router.types import Record
from tests.corpus import events

CONFIG = """
bus: {sqlite: {path: bus.db, max_message: 64KiB}}
ingress: {agents: {topics: [in]}, low: {topics: [in.low], capture: metadata}}
routes:
  everything: {topic: out.full, capture: full}
  structure: {topic: out.metadata}
  least: {topic: out.none, capture: none}
  redacted: {topic: out.redacted, capture: redacted}
  tools: {topic: out.tools, match: {type: tool.*}}
failures: {topic: failures, journal: journal.db}
dead_letters: {topic: dead}
"""
ROUTES = ("everything", "structure", "least", "redacted", "tools")


def pipeline(text=CONFIG):
    config = parse(text)
    return build.pipeline(config, build.decoder(config))


PIPELINE = pipeline()


def memory():
    return Memory(
        PendingRequests(most=100, most_answered=100, redelivered=0, age=1000), Streams(100)
    )


def step(value, topic="in", with_pipeline=PIPELINE):
    if value is not None and not isinstance(value, bytes):
        value = json.dumps(value).encode()
    record = Record(topic, 2, 7, 1000, b"key", value)
    return with_pipeline.step(record, memory())


def by_topic(outcome):
    return {output.topic: output for output in outcome.outputs}


def test_each_route_that_matches_gets_its_copy_and_the_others_none():
    """All matching routes get one; the decisions are in the order of the routes."""
    outcome = step(events.minimal()["tool.before"])
    assert outcome.decisions == ("routed",) * 5
    outcome = step(events.minimal()["session.end"])
    assert outcome.decisions == ("routed", "routed", "routed", "routed", "filtered")
    assert set(by_topic(outcome)) == {"out.full", "out.metadata", "out.none", "out.redacted"}


def test_a_full_copy_is_the_event_byte_for_byte():
    """Spelling, spaces and order of what came in are kept."""
    raw = json.dumps(events.maximal()["tool.after"], indent=1).encode()
    assert by_topic(step(raw))["out.full"].value == raw


def test_the_event_inside_a_message_is_what_is_routed():
    """A JSON-RPC wrapper is checked and left behind."""
    event = events.maximal()["tool.before"]
    for wrap in (events.observe, events.intercept):
        copy = by_topic(step(wrap(event)))["out.full"].value
        assert json.loads(copy) == event


def test_copies_of_one_level_are_made_once_and_shared():
    """Two metadata routes share the bytes."""
    outputs = by_topic(step(events.maximal()["tool.before"]))
    assert outputs["out.metadata"].value is outputs["out.tools"].value
    assert outputs["out.metadata"].value is outputs["out.redacted"].value


def test_every_copy_is_keyed_by_source_and_described_by_its_headers():
    """Consumers can filter without parsing, and one source stays in order."""
    event = events.maximal()["tool.before"]
    for topic, output in by_topic(step(event)).items():
        attributes = read_headers(output.headers)
        assert output.key == event["source"].encode()
        assert (attributes.id, attributes.source) == (event["id"], event["source"])
        assert (attributes.type, attributes.time) == ("tool.before", event["time"])
        levels = {"out.full": "full", "out.none": "none"}
        assert attributes.capture == levels.get(topic, "metadata")


def test_an_event_from_a_metadata_ingress_is_metadata_everywhere():
    """What an ingress holds is a bound on all of its events."""
    outcome = step(events.maximal()["tool.before"], topic="in.low")
    assert events.CANARY not in by_topic(outcome)["out.full"].value.decode().lower()
    assert outcome.levels == ("metadata", "metadata", "none", "metadata", "metadata")


def test_an_event_that_declares_redacted_passes_a_redacted_ceiling_as_it_is():
    """Its emitter answers for the claim."""
    event = {**events.minimal()["tool.before"]}
    event["extensions"] = {"dev.hookbus.capture": {"level": "redacted"}}
    raw = json.dumps(event).encode()
    outputs = by_topic(step(raw))
    assert outputs["out.redacted"].value == outputs["out.full"].value == raw
    assert dict(outputs["out.full"].headers)["hookbus-capture"] == b"redacted"


def test_a_malformed_declaration_is_ignored_and_told():
    """It is counted by whoever settles the record."""
    event = {**events.minimal()["tool.before"], "extensions": {"dev.hookbus.capture": "none"}}
    outcome = step(event)
    assert outcome.claim == "malformed"
    assert outcome.levels[0] == "full"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "invalid_json"),
        (b"", "invalid_json"),
        (b"not json", "invalid_json"),
        (b'\xff{"a":1}', "invalid_utf8"),
        (b'{"a":1,"a":2}', "duplicate_key"),
        (b"[" * 10_000 + b"]" * 10_000, "too_deep"),
        (b'{"harness":{},"type":"x.y"}', "unsupported_type"),
        (b'{"a":1}', "unknown_protocol"),
        (b"[1e400]", "number_range"),
        (b'"' + b"x" * (4 * 2**20) + b'"', "too_large"),
    ],
)
def test_what_is_no_event_becomes_one_dead_letter_with_its_coordinates(value, code):
    """A code, where it was, how long it was; never what it was."""
    outcome = step(value)
    assert outcome.decisions == ("dead_lettered",) * 5
    (letter,) = outcome.outputs
    told = json.loads(letter.value)
    assert letter.topic == "dead"
    assert told["reason"] == code
    assert (told["topic"], told["partition"], told["offset"], told["timestamp"]) == (
        "in",
        2,
        7,
        1000,
    )
    assert told.get("size") == (None if value is None else len(value))
    assert "value" not in told


def test_a_full_level_dead_letter_holds_the_bytes_as_far_as_they_fit():
    """Only where the configuration says so, and never more than a record may hold."""
    full = pipeline(CONFIG.replace("topic: dead", "topic: dead, capture: full"))
    (letter,) = step(b"not json", with_pipeline=full).outputs
    assert base64.b64decode(json.loads(letter.value)["value"]) == b"not json"
    (letter,) = step(b"x" * 70_000, with_pipeline=full).outputs
    assert "value" not in json.loads(letter.value)
    assert len(letter.value) < 65536


def test_a_copy_that_does_not_fit_is_a_dead_letter_of_its_route_alone():
    """The smaller copies of the same event go on."""
    event = events.minimal()["tool.before"]
    event["tool"]["input"] = {"text": "x" * 70_000}
    outcome = step(event)
    assert outcome.decisions == ("dead_lettered", "routed", "routed", "routed", "routed")
    letter = json.loads(by_topic(outcome)["dead"].value)
    assert (letter["reason"], letter["route"]) == ("too_large", "everything")


def test_an_event_whose_identifiers_fill_a_record_is_dead_lettered_everywhere():
    """Its key and headers would be too large, whatever the copy holds."""
    event = events.minimal()["session.end"]
    event["source"] = "urn:" + "x" * 40_000
    outcome = step(event)
    assert outcome.decisions[:4] == ("dead_lettered",) * 4
    assert all(output.size < 65536 for output in outcome.outputs)


def test_an_event_that_no_route_wants_is_unmatched():
    """That is told apart from being filtered by one route."""
    narrow = pipeline(
        CONFIG[: CONFIG.index("  everything")]
        + "  tools: {topic: out.tools, match: {type: tool.*}}\n"
        + CONFIG[CONFIG.index("failures") :]
    )  # fmt: skip
    outcome = step(events.minimal()["session.end"], with_pipeline=narrow)
    assert outcome.decisions == ("unmatched",)
    assert outcome.outputs == ()


def test_a_hook_failure_from_a_harness_reaches_the_failures_topic_too():
    """Whatever the routes say, it can be audited."""
    event = events.maximal()["hook.failure"]
    copy = by_topic(step(event))["failures"]
    assert json.loads(copy.value)["failure"]["backendId"] == event["failure"]["backendId"]
    assert events.CANARY not in copy.value.decode().lower()


@pytest.mark.parametrize("kind", sorted(events.maximal()))
def test_no_record_but_a_full_copy_holds_content(kind):
    """Neither values nor keys nor headers of the others, for any type."""
    for output in step(events.maximal()[kind]).outputs:
        shown = [output.value.decode(), (output.key or b"").decode(), repr(output.headers)]
        if output.topic != "out.full":
            assert events.CANARY not in "".join(shown).lower()
