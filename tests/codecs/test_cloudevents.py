"""CloudEvents around AHP and AEP events, out and back in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.codecs.carried import binary_attributes, carries, unwrap, unwrap_binary
from hookbus.codecs.cloudevents import CloudEvent, binary, structured, wrap_aep, wrap_ahp
from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.strict import encode
from hookbus.codecs.verdict import Refusal
from tests.corpus import aep_events, events
from tests.upstream import FOLDER, golden, load_json, needs_upstream

DECODER = Decoder()
AHP = {**events.maximal(), **{f"{kind}, minimal": e for kind, e in events.minimal().items()}}
AEP = [make(kind) for kind in aep_events.TYPES for make in (aep_events.maximal, aep_events.minimal)]

Tree = dict[str, Any]


def clouds() -> list[Tree]:
    """The golden events as CloudEvents."""
    lines = FOLDER.joinpath("fixtures/ce-roundtrip/ce-expected.jsonl").read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def ahp_event(tree: Tree) -> Event:
    event = DECODER.decode(encode(tree))
    assert isinstance(event, Event)
    return event


def around(tree: Tree) -> Tree:
    """The structured CloudEvent of an event."""
    if "aep" in tree:
        return json.loads(structured(wrap_aep(tree, encode(tree))))
    return json.loads(structured(wrap_ahp(ahp_event(tree), encode(tree), "full")))


def inside(cloud: Any) -> Event | Refusal:
    return DECODER.decode(encode(cloud))


def back(cloud: CloudEvent) -> tuple[Tree, bytes]:
    """The event in the binary form of a CloudEvent."""
    headers, value = binary(cloud)
    attributes = binary_attributes(headers)
    assert attributes is not None
    event = DECODER.decode_binary(attributes, value)
    assert isinstance(event, Event), event
    return event.tree, event.raw


@needs_upstream
def test_the_golden_corpus_becomes_the_golden_cloudevents():
    """Fixture ce-roundtrip, `ce-expected.jsonl`."""
    assert [around(json.loads(line)) for line in golden()] == clouds()


@needs_upstream
def test_the_golden_cloudevents_become_the_golden_corpus():
    """The way in is the exact reverse, through both forms."""
    for line, cloud in zip(golden(), clouds(), strict=True):
        event = json.loads(line)
        there = inside(cloud)
        assert isinstance(there, Event)
        assert there.tree == json.loads(there.raw) == event
        assert back(wrap_aep(event, encode(event)))[0] == event


@needs_upstream
@pytest.mark.parametrize("number", range(3))
def test_the_inbound_fixtures_keep_and_drop_what_they_say(number):
    """Fixture ce-roundtrip, `inbound-cases.json`; what is dropped is counted."""
    case = load_json("fixtures/ce-roundtrip/inbound-cases.json")["cases"][number]
    event = inside(case["ce"])
    assert isinstance(event, Event), case["name"]
    assert event.tree == json.loads(event.raw) == case["expected"]
    assert event.dropped == len(case["ce"].keys() & {"aep_bad"})


@pytest.mark.parametrize("event", AEP, ids=lambda event: event["type"])
def test_every_aep_event_comes_back_as_it_was(event):
    """Members, values and the bytes of its data."""
    event = {name: v for name, v in event.items() if name != "acmecount"}  # a text when binary
    there = inside(around(event))
    assert isinstance(there, Event)
    assert (there.tree, there.protocol, there.dropped) == (event, "aep", 0)
    assert json.loads(there.raw) == event
    tree, raw = back(wrap_aep(event, encode(event)))
    assert tree == json.loads(raw) == event


@pytest.mark.parametrize("event", AHP.values(), ids=AHP)
def test_every_ahp_event_comes_back_byte_for_byte(event):
    """Blanks, escapes and the order of members included, through both forms."""
    raw = json.dumps(event, indent=1).encode()
    read = DECODER.decode(raw)
    assert isinstance(read, Event)
    cloud = wrap_ahp(read, read.raw, "full")
    there = DECODER.decode(structured(cloud))
    assert isinstance(there, Event)
    assert there.raw == back(cloud)[1] == raw
    assert there.tree == event


def test_the_attributes_of_an_ahp_event_repeat_what_consumers_filter_by():
    """At `none` nothing tells the session."""
    event = events.maximal()["tool.before"]
    cloud = around(event)
    assert cloud.pop("data") == event
    assert cloud == {
        "specversion": "1.0",
        "id": "event-tool.before",
        "source": "urn:example:agent:1",
        "type": "org.agenthooksprotocol.tool.before",
        "time": event["time"],
        "datacontenttype": "application/json",
        "ahpharness": "demo-harness",
        "hookbuscapture": "full",
        "ahpsession": "session-1",
    }
    assert "ahpsession" not in wrap_ahp(ahp_event(event), b"{}", "none").attributes


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("id", "other", "/id"),
        ("source", "urn:other", "/source"),
        ("type", "org.agenthooksprotocol.tool.after", "/type"),
        ("time", "2026-08-24T08:51:15Z", "/time"),
        ("time", 1, "/time"),
        ("ahpsession", "other", "/ahpsession"),
        ("ahpharness", True, "/ahpharness"),
        ("specversion", "0.3", "/specversion"),
        ("datacontenttype", "text/xml", "/datacontenttype"),
        ("data_base64", "e30=", "/data_base64"),
        ("data", [], "/data"),
        ("data", {"type": "tool.before"}, "/data"),
    ],
)
def test_a_cloudevent_that_contradicts_its_ahp_event_is_refused(name, value, path):
    """With the pointer of the attribute, or of the fault within the data."""
    cloud = {**around(events.maximal()["tool.before"]), name: value}
    refusal = inside(cloud)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.path) == ("schema", path)


@pytest.mark.parametrize("name", ["id", "source", "data"])
def test_a_cloudevent_without_what_it_needs_is_refused(name):
    """What its event says doesn't stand in for it."""
    cloud = around(events.maximal()["tool.before"])
    del cloud[name]
    assert inside(cloud) == Refusal("schema", "", "required")


def test_the_same_instant_may_be_spelled_anew_on_the_way():
    """Other software reads and writes times."""
    cloud = {**around(events.maximal()["tool.before"]), "time": "2026-08-24T06:51:14.123000Z"}
    assert isinstance(inside(cloud), Event)


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("aepsessionid", 5, "/aepsessionid"),
        ("aepsequence", -1, "/aepsequence"),
        ("aepcapture", "all", "/aepcapture"),
        ("source", "a source", "/source"),
        ("data", {"tool": 1}, "/data/tool"),
        ("data", None, "/data"),
    ],
)
def test_the_faults_of_an_aep_event_are_told_where_the_cloudevent_has_them(name, value, path):
    """A pointer is one in the value as it came in."""
    refusal = inside({**around(aep_events.maximal("tool.requested")), name: value})
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.path) == ("schema", path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agent", "forged"),
        ("session", "forged"),
        ("capture", "none"),
        ("aep", "0.1"),
        ("seq", 9),
        ("acmebox", {"a": 1}),
        ("acmelist", ["a"]),
        ("acmefloat", 0.5),
        ("acme_bad", "x"),
        ("Acme", "x"),
        ("acme" * 6, "x"),
        ("dataschema", "urn:schema"),
    ],
)
def test_what_is_no_extension_attribute_is_dropped_and_counted(name, value):
    """An attribute named like one of the envelope never becomes it."""
    event = aep_events.maximal("tool.requested")
    there = inside({**around(event), name: value})
    assert isinstance(there, Event)
    assert there.tree == event
    assert there.dropped == 1


def test_an_attribute_that_is_null_is_not_there():
    """So CloudEvents' JSON format says."""
    event = aep_events.maximal("tool.requested")
    there = inside({**around(event), "acmenothing": None})
    assert isinstance(there, Event)
    assert (there.tree, there.dropped) == (event, 0)


@pytest.mark.parametrize("name", ["specversion", "datacontenttype", "dataschema", "aepsessionid"])
def test_an_extension_that_would_pass_for_another_attribute_stays_behind(name):
    """The rest of the event goes out unharmed."""
    event = aep_events.maximal("tool.requested")
    cloud = wrap_aep({**event, name: "forged"}, encode({**event, name: "forged"}))
    assert cloud.dropped == 1
    there = DECODER.decode(structured(cloud))
    assert isinstance(there, Event)
    assert there.tree == event


def test_a_cloudevent_of_something_else_is_unknown():
    """Only two prefixes are ours."""
    cloud = {**around(aep_events.maximal("tool.requested")), "type": "com.example.tool.requested"}
    assert inside(cloud) == Refusal("unknown_protocol")
    assert carries(cloud) is None


def test_an_event_with_an_extension_named_specversion_is_still_an_event():
    """The prefix of the type tells a CloudEvent."""
    event = {**aep_events.maximal("tool.requested"), "specversion": "1.0"}
    there = inside(event)
    assert isinstance(there, Event)
    assert there.tree == event


def test_the_headers_that_routes_write_are_no_binary_cloudevent():
    """There the value is the event itself; and a structured one says so in its content type."""
    headers = (("ce_specversion", b"1.0"), ("ce_type", b"tool.before"), ("ce_id", b"1"))
    assert binary_attributes(headers) is None
    assert binary_attributes(()) is None
    kind = (("ce_type", b"dev.aep.tool.requested"),)
    content = (("content-type", b"application/cloudevents+json"),)
    assert binary_attributes(kind + content) is None
    assert binary_attributes(kind) == {"type": "dev.aep.tool.requested"}


@pytest.mark.parametrize("value", [b"{", b'{"a":1,"a":2}', b'{},"aepcapture":"full"', b"\xff"])
def test_the_data_of_a_binary_cloudevent_is_one_strict_json_value(value):
    """Nothing in it becomes an attribute."""
    headers, _ = binary(wrap_aep(event := aep_events.maximal("tool.requested"), encode(event)))
    attributes = binary_attributes(headers)
    assert attributes is not None
    assert isinstance(DECODER.decode_binary(attributes, value), Refusal)


def test_a_binary_cloudevent_without_a_value_has_no_data():
    """A record without a value is no tombstone if its headers are an event."""
    event = aep_events.envelope("attention.routed", subject="e1")
    headers, value = binary(wrap_aep(event, encode(event)))
    assert value is None
    attributes = binary_attributes(headers)
    assert attributes is not None
    there = DECODER.decode_binary(attributes, None)
    assert isinstance(there, Event)
    assert there.tree == event


@settings(deadline=None, database=None, max_examples=200)
@given(
    st.dictionaries(
        st.text("aepcdt1_", min_size=1, max_size=22) | st.sampled_from(list(AEP[0])),
        st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just({"a": 1}),
        max_size=4,
    )
)
def test_whatever_comes_around_an_event_it_is_a_valid_event_or_a_refusal(more):
    """And what was accepted goes out and comes back the same."""
    cloud = {**around(aep_events.maximal("tool.requested")), **more}
    there = inside(cloud)
    if isinstance(there, Event) and there.protocol == "aep":
        again = inside(around(there.tree))
        assert isinstance(again, Event)
        assert again.tree == there.tree


def test_unwrapping_keeps_the_bytes_of_the_data():
    """Numbers and escapes stay as they were spelled."""
    raw = (
        b'{"specversion":"1.0","type":"dev.aep.x.acme.a.b","id":"1","source":"urn:a",'
        b'"time":"2026-08-24T08:51:14Z","aepversion":"0.1","aepagentid":"a","aepsessionid":"s",'
        b'"aepsequence":1,"data": {"n": 1.50, "t": "\\u00e9"} }'
    )
    carried = unwrap(json.loads(raw), raw)
    assert not isinstance(carried, Refusal)
    assert carried.raw.endswith(b',"data":{"n": 1.50, "t": "\\u00e9"}}')
    same = unwrap_binary({**carried.attributes}, {"n": 1.5, "t": "é"}, b'{"n": 1.50}')
    assert not isinstance(same, Refusal)
