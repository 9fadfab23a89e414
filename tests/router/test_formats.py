"""Records in the format that a route asks for, through the whole pipeline."""

import json

import pytest
from agenthooksprotocol.runtime import Validator
from hypothesis import given, settings
from prometheus_client import CollectorRegistry

from hookbus.codecs.bridge import COUNTERPARTS
from hookbus.codecs.cloudevents import binary, wrap_aep, wrap_ahp
from hookbus.codecs.event import Event
from hookbus.codecs.headers import read_headers
from hookbus.codecs.strict import encode
from hookbus.codecs.verdict import Refusal
from hookbus.router import build
from hookbus.router.configuration.config_file import parse
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.types import Record
from tests.corpus import aep_events, elicitations, events

LEVELS = ("none", "metadata", "redacted", "full")
FORMATS = ("aep", "ahp", "cloudevents")
ROUTES = "\n".join(
    f"  {form}-{level}: {{topic: {form}.{level}, capture: {level}, format: {form}}}"
    for form in FORMATS
    for level in LEVELS
)
CONFIG = parse(f"""
bus: {{sqlite: {{path: bus.db}}}}
ingress: {{agents: {{topics: [in]}}}}
routes:
  plain: {{topic: plain, capture: full}}
{ROUTES}
dead_letters: {{topic: dead}}
""")
DECODER = build.decoder(CONFIG)
PIPELINE = build.pipeline(CONFIG, DECODER)
OFFICIAL = Validator()
AHP = {**events.maximal(), **{f"{kind}, minimal": e for kind, e in events.minimal().items()}}
AEP = {kind: aep_events.maximal(kind) for kind in aep_events.TYPES}
PARAMS = {
    "message": "canary question",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "zone": {"type": "string", "oneOf": [{"const": "eu", "title": "canary Europe"}]},
            "count": {"type": "number", "title": "canary count", "minimum": 0},
            "why": {"type": "string"},
        },
        "required": ["zone"],
    },
}
ANSWERS = {"zone": "eu", "count": 3, "why": "canary"}


def step(value, offset=7, memory=None, headers=(), pipeline=PIPELINE):
    if isinstance(value, dict):
        value = encode(value)
    record = Record("in", 0, offset, 1000, b"key", value, headers)
    return pipeline.step(record, memory or build.memory(CONFIG))


def by_topic(outcome):
    found = {}
    for output in outcome.outputs:
        found.setdefault(output.topic, []).append(output)
    return found


def valid(value):
    event = DECODER.decode(value)
    assert isinstance(event, Event), event
    return event


def elicitation(kind, number, body, **members):
    event = {**events.maximal()[f"user.elicitation.{kind}"], "id": f"e{number}"}
    event["parentEventId"] = "e1"
    part = {"id": f"p{number}", "kind": "text", "mediaType": "text/plain", "selection": "body"}
    part["text"] = json.dumps(body)
    event["elicitation"] = {"server": "deployer", "mode": "form", kind: part, **members}
    return event


def conversation():
    """A request and its answer; topic to the records of both."""
    memory = build.memory(CONFIG)
    asked = by_topic(step(elicitation("request", 1, PARAMS), 1, memory))
    body = {"action": "accept", "content": ANSWERS}
    told = by_topic(step(elicitation("result", 2, body, action="accept"), 2, memory))
    return asked, told


@pytest.mark.parametrize("name", AHP)
def test_every_ahp_event_is_valid_in_every_format_and_holds_no_more_than_its_level(name):
    """What is not said is decided, not lost."""
    event = AHP[name]
    outcome = step(event)
    found = by_topic(outcome)
    decided = dict(zip(CONFIG.routes, outcome.decisions, strict=True))
    sayable = event["type"] in COUNTERPARTS and "session" in event
    for level in LEVELS:
        assert decided[f"aep-{level}"] == ("routed" if sayable else "untranslated")
        honoured = "metadata" if level == "redacted" else level
        for form in FORMATS:
            for output in found.get(f"{form}.{level}", []):
                copy = valid(output.value)
                told = read_headers(output.headers)
                assert copy.protocol == ("aep" if form == "aep" else "ahp")
                assert (told.type, told.id, told.source) == (copy.type, copy.id, copy.source)
                assert told.capture == honoured
                if honoured in ("none", "metadata"):
                    assert events.CANARY not in output.value.decode().lower()
                if form == "aep":
                    assert copy.tree["capture"] == honoured
                    assert step(output.value).claim is None  # nothing above what it declares
                else:
                    OFFICIAL.validate("event", copy.tree)


@pytest.mark.parametrize("name", AEP)
def test_every_aep_event_is_valid_in_every_format(name):
    """Its own is what it was; in AHP are forms and their answers alone."""
    outcome = step(AEP[name])
    found = by_topic(outcome)
    for form in FORMATS:
        for level in LEVELS:
            for output in found.get(f"{form}.{level}", []):
                copy = valid(output.value)
                assert read_headers(output.headers).type == copy.type
                assert copy.protocol == ("ahp" if form == "ahp" else "aep")
                if form == "ahp":
                    OFFICIAL.validate("event", copy.tree)
                elif form == "cloudevents":
                    assert copy.tree == json.loads(found[f"aep.{level}"][0].value)
    assert [json.loads(each.value) for each in found["aep.full"]] == [AEP[name]]


def test_an_event_in_its_own_protocol_passes_byte_for_byte():
    """The format is no reason to write it anew."""
    raw = json.dumps(events.maximal()["tool.before"], indent=1).encode()
    found = by_topic(step(raw))
    assert found["plain"][0].value == found["ahp.full"][0].value == raw
    assert raw in found["cloudevents.full"][0].value


def test_routes_of_one_format_and_level_share_a_copy():
    """Each distinct one is made once."""
    found = by_topic(step(events.maximal()["tool.before"]))
    for form in FORMATS:
        assert found[f"{form}.metadata"][0].value is found[f"{form}.redacted"][0].value


def test_a_structured_cloudevent_says_so():
    """In the header of the CloudEvents Kafka binding."""
    (output,) = by_topic(step(events.maximal()["tool.before"]))["cloudevents.none"]
    assert dict(output.headers)["content-type"].startswith(b"application/cloudevents+json")


@pytest.mark.parametrize("level", ["metadata", "redacted"])
def test_a_form_is_said_by_its_structure_below_full(level):
    """With the request at hand closed choices stay; labels and texts go."""
    asked, told = conversation()
    (request,) = asked[f"aep.{level}"]
    assert json.loads(request.value)["data"] == {
        "kind": "form",
        "prompt": "demo-harness requests input (3 fields)",
        "fields": [
            {
                "id": "zone",
                "type": "select",
                "label": "zone",
                "required": True,
                "choices": [{"id": "eu", "label": "eu"}],
            },
            {"id": "count", "type": "number", "label": "count", "required": False, "min": 0},
            {"id": "why", "type": "string", "label": "why", "required": False},
        ],
    }
    answered, resolved = told[f"aep.{level}"]
    answer = json.loads(answered.value)
    assert answer["data"] == {"answer": {"values": {"zone": "eu", "count": 3}}}
    assert (answer["subject"], answer["ahpresult"]) == ("e1", "matched")
    assert json.loads(resolved.value)["data"] == {"resolution": "answered"}
    assert read_headers(resolved.headers).id == "e2.resolved"


def test_a_form_at_full_is_said_with_its_words():
    """Labels, prompt and texts."""
    asked, told = conversation()
    data = json.loads(asked["aep.full"][0].value)["data"]
    assert data["prompt"] == "canary question"
    assert data["fields"][0]["choices"] == [{"id": "eu", "label": "canary Europe"}]
    answer = json.loads(told["aep.full"][0].value)["data"]["answer"]
    assert answer == {"values": ANSWERS}


@pytest.mark.parametrize("level", LEVELS)
def test_what_was_said_in_aep_comes_back_through_another_pipeline(level):
    """A second hookbus takes the AEP records in, and says them in AHP at the same level."""
    memory = build.memory(CONFIG)
    found = []
    for offset, records in enumerate(conversation()):
        output = records[f"aep.{level}"][0]
        there = by_topic(step(output.value, offset, memory, output.headers))
        (again,) = there[f"ahp.{level if level != 'redacted' else 'metadata'}"]
        found.append(json.loads(again.value))
        OFFICIAL.validate("event", found[-1])
    request, result = found
    assert (request["id"], result["id"]) == ("e1", "e2")
    assert request["elicitation"]["server"] == result["elicitation"]["server"] == "deployer"
    assert result["elicitation"]["action"] == "accept"
    if level in ("metadata", "redacted"):
        form = request["extensions"]["dev.hookbus.form"]
        assert [field["id"] for field in form["fields"]] == ["zone", "count", "why"]
        values = result["extensions"]["dev.hookbus.form"]["values"]
        assert values == {"zone": "eu", "count": 3}
    if level == "full":
        body = json.loads(result["elicitation"]["result"]["text"])
        assert body == {"action": "accept", "content": ANSWERS}


def test_a_redacting_route_says_redacted_texts_in_any_format():
    """Texts come from the redacted copy; credentials are in no copy below full."""
    config = parse("""
        bus: {sqlite: {path: bus.db}}
        ingress: {agents: {topics: [in]}}
        routes:
          aep: {topic: aep, capture: redacted, redact: true, format: aep}
          cloud: {topic: cloud, capture: redacted, redact: true, format: cloudevents}
        dead_letters: {topic: dead}
    """)
    pipeline, memory = build.pipeline(config, DECODER), build.memory(config)
    params = {**PARAMS, "message": "Why? password=hunter2secret"}
    content = {**ANSWERS, "why": "ask ada@example.com"}
    body = {"action": "accept", "content": content}
    asked = by_topic(step(elicitation("request", 1, params), 1, memory, pipeline=pipeline))
    told = by_topic(
        step(elicitation("result", 2, body, action="accept"), 2, memory, pipeline=pipeline)
    )
    request, answer = (valid(found["aep"][0].value).tree for found in (asked, told))
    assert request["capture"] == answer["capture"] == "redacted"
    assert request["data"]["prompt"] == "Why? password=[REDACTED:secret]"
    assert answer["data"]["answer"]["values"] == {**ANSWERS, "why": "ask [REDACTED:pii]"}
    for found in (asked, told):
        cloud = found["cloud"][0].value.decode()
        assert "hunter2secret" not in cloud
        assert "ada@example.com" not in cloud


@settings(deadline=None, database=None, max_examples=150)
@given(elicitations.near(elicitations.requests()), elicitations.near(elicitations.results()))
def test_whatever_a_body_holds_each_record_is_valid(params, result):
    """The ways there and back make no event that a receiver would refuse."""
    memory = build.memory(CONFIG)
    mode = params.get("mode") if isinstance(params, dict) else None
    mode = mode if mode in ("form", "url") else "form"
    action = result.get("action") if isinstance(result, dict) else None
    action = action if action in ("accept", "decline", "cancel") else "accept"
    story = (
        elicitation("request", 1, params, mode=mode),
        elicitation("result", 2, result, mode=mode, action=action),
    )
    for offset, event in enumerate(story):
        for topic, outputs in by_topic(step(event, offset, memory)).items():
            if topic.startswith("aep."):
                for output in outputs:
                    valid(output.value)
                    there = step(output.value)
                    assert there.claim is None
                    for again in by_topic(there).get("ahp.full", []):
                        OFFICIAL.validate("event", json.loads(again.value))


def test_a_session_said_in_aep_keeps_the_rules_of_its_stream():
    """Places rise, every request that was answered ends, and the session ends once."""
    first, memory = build.memory(CONFIG), build.memory(CONFIG)
    story = [
        events.maximal()["session.start"],
        elicitation("request", 1, PARAMS),
        events.maximal()["tool.before"],
        elicitation("result", 2, {"action": "accept", "content": ANSWERS}, action="accept"),
        {**elicitation("request", 3, PARAMS)},
        {**elicitation("result", 4, {"action": "cancel"}, action="cancel"), "parentEventId": "e3"},
        events.maximal()["session.end"],
    ]
    said = [
        output
        for offset, event in enumerate(story)
        for output in by_topic(step(event, offset, first))["aep.metadata"]
    ]
    assert len(said) == len(story) + 1
    for offset, output in enumerate(said):
        assert step(output.value, offset, memory).violation is None


@pytest.mark.parametrize("event", [AEP["tool.requested"], AHP["tool.before"]], ids=["aep", "ahp"])
def test_cloudevents_come_in_by_both_bindings(event):
    """A record is routed by the event inside."""
    read = DECODER.decode(encode(event))
    assert isinstance(read, Event)
    whole = "aep" in event
    cloud = wrap_aep(event, read.raw) if whole else wrap_ahp(read, read.raw, "full")
    headers, value = binary(cloud)
    (bare,) = by_topic(step(value, headers=headers))["plain"]
    assert json.loads(bare.value) | {"acmecount": 3} == event | {"acmecount": 3}
    (structured,) = by_topic(step(event))["cloudevents.full"]
    (bare,) = by_topic(step(structured.value, headers=structured.headers))["plain"]
    assert json.loads(bare.value) == event


def test_a_binary_cloudevent_that_contradicts_its_event_is_a_dead_letter():
    """With code and pointer, as any other refusal."""
    event = AHP["tool.before"]
    read = DECODER.decode(encode(event))
    assert isinstance(read, Event)
    headers, value = binary(wrap_ahp(read, read.raw, "full"))
    forged = (*headers, ("ce_source", b"urn:other"))
    assert step(value, headers=forged).refusal == Refusal("schema", "/source", "const")
    assert step(None, headers=headers).refusal == Refusal("schema", "", "required")
    assert step(None).refusal == Refusal("invalid_json")


def test_what_is_not_said_is_counted_by_route():
    """Every series exists from the start."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, CONFIG, build.known_types(), "1")

    def count(route):
        return registry.get_sample_value("hookbus_untranslated_total", {"route": route})

    assert count("aep-none") == count("plain") == 0
    metrics.router.routed([step(AHP["tool.before, minimal"])], tuple(CONFIG.routes))
    assert (count("aep-none"), count("ahp-none")) == (1, 0)
    metrics.router.routed([step(AEP["tool.requested"])], tuple(CONFIG.routes))
    assert (count("aep-none"), count("ahp-none")) == (1, 1)
    labels = {"route": "aep-none", "decision": "untranslated"}
    assert registry.get_sample_value("hookbus_route_events_total", labels) == 1
    assert registry.get_sample_value("hookbus_cloudevents_dropped_attributes_total") == 0
    forged = {**AEP["tool.requested"], "specversion": "2"}
    metrics.router.routed([step(forged)], tuple(CONFIG.routes))
    assert registry.get_sample_value("hookbus_cloudevents_dropped_attributes_total") == 1
