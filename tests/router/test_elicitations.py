"""Elicitations through the pipeline: bodies, correlation, and what copies say of forms."""

import copy
import json

import pytest
from agenthooksprotocol.runtime import Validator

from hookbus.codecs.aep_stream import Streams
from hookbus.codecs.headers import read_headers
from hookbus.policies.correlation import Identity, Moment, PendingRequests, Question, Reply
from hookbus.router import build
from hookbus.router.configuration.config_file import parse
from hookbus.router.memory import Memory
from hookbus.router.types import Record

CONFIG = parse("""
bus: {sqlite: {path: bus.db}}
ingress: {agents: {topics: [in]}}
routes:
  whole: {topic: full, capture: full}
  structure: {topic: metadata}
  least: {topic: none, capture: none}
  redacted: {topic: redacted, capture: redacted}
dead_letters: {topic: dead}
""")
PIPELINE = build.pipeline(CONFIG, build.decoder(CONFIG))
OFFICIAL = Validator()
BELOW_FULL = ("metadata", "none", "redacted")

PROPERTIES = {
    "approver": {"type": "string", "title": "Canary approver"},
    "amount": {"type": "number", "minimum": 0, "title": "Canary amount"},
    "count": {"type": "integer"},
    "urgent": {"type": "boolean", "description": "canary"},
    "zone": {"type": "string", "enum": ["eu-1", "us-1"], "enumNames": ["Canary", "Ohio"]},
    "tier": {"type": "string", "oneOf": [{"const": "low", "title": "Canary low"}]},
    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    "password": {"type": "string"},
    "pin": {"type": "integer"},
    "card_type": {"type": "string", "enum": ["visa"], "title": "Credit card"},
}
ANSWERS = {
    "approver": "Canary Adeyemi",
    "amount": 412.5,
    "count": 5.0,
    "urgent": True,
    "zone": "eu-1",
    "tier": "low",
    "tags": ["a"],
    "password": "canary-hunter2",
    "pin": 4711,
    "card_type": "visa",
}
STRUCTURE = {k: ANSWERS[k] for k in ("amount", "count", "urgent", "zone", "tier", "tags")}


def event(kind, part, number, **elicitation):
    made = {
        "id": f"e{number}", "source": "urn:agent:1", "type": f"user.elicitation.{kind}",
        "time": f"2026-11-29T10:{number:02}:00Z", "harness": {"name": "h", "version": "1"},
        "session": {"id": "s1"},
        "elicitation": {"server": "deployer", "mode": "form", **elicitation},
    }  # fmt: skip
    if part is not None:
        text = part if isinstance(part, str) else json.dumps(part)
        made["elicitation"][kind] = {
            "id": f"p{number}", "kind": "text", "mediaType": "text/plain", "selection": "body",
            "text": text,
        }  # fmt: skip
    if kind == "result":
        made["parentEventId"] = "e0"
    return made


def request(body=None, number=0, **elicitation):
    form = {"type": "object", "properties": PROPERTIES, "required": ["approver"]}
    body = {"message": "Canary?", "requestedSchema": form} if body is None else body
    return event("request", body, number, **elicitation)


def result(body, number=1, action="accept", **elicitation):
    return event("result", body, number, action=action, **elicitation)


def accept(content, number=1):
    return result({"action": "accept", "content": content}, number)


class Play:
    """Events taken one after another by one partition."""

    def __init__(self):
        self.pending = PendingRequests(most=100, most_answered=100, redelivered=0, age=86_400_000)
        self.offset = 0

    def take(self, value):
        record = Record(
            "in", 0, self.offset, self.offset * 60_000, None, json.dumps(value).encode()
        )
        self.offset += 1
        self.outcome = PIPELINE.step(record, Memory(self.pending, Streams(100)))
        assert self.outcome.refusal is None
        return {output.topic: output for output in self.outcome.outputs}


def form_of(output):
    return json.loads(output.value)["extensions"].get("dev.hookbus.form")


def test_a_metadata_copy_of_a_request_carries_the_structure_of_its_form():
    """Ids are the property keys and enum values, labels are the ids."""
    outputs = Play().take(request())
    told = form_of(outputs["metadata"])
    assert told["body"] == "conforming"
    fields = {field["id"]: field for field in told["fields"]}
    assert list(fields) == list(PROPERTIES)
    assert fields["approver"] == {
        "id": "approver", "type": "string", "label": "approver", "required": True,
    }  # fmt: skip
    assert fields["amount"]["min"] == 0
    assert fields["zone"]["choices"] == [{"id": i, "label": i} for i in ("eu-1", "us-1")]
    assert fields["tags"]["multi"] is True
    for level in BELOW_FULL:
        assert b"anary" not in outputs[level].value
    assert form_of(outputs["none"]) is None


def test_a_result_with_its_request_at_hand_keeps_booleans_numbers_and_closed_choices():
    """Free text goes, and so does every answer to a field that asks for a credential."""
    play = Play()
    play.take(request())
    outputs = play.take(accept({**ANSWERS, "unknown": 7}))
    told = form_of(outputs["metadata"])
    assert told["values"] == STRUCTURE
    assert (told["body"], told["result"]) == ("conforming", "matched")
    assert play.outcome.finding.credentials == 3
    assert play.outcome.finding.waited == 60
    for level in BELOW_FULL:
        for secret in (b"anary", b"hunter2", b"4711"):
            assert secret not in outputs[level].value


def test_a_result_without_its_request_keeps_booleans_and_numbers_alone():
    """Nothing says that a text is a choice."""
    outputs = Play().take(accept(ANSWERS))
    told = form_of(outputs["metadata"])
    assert told["values"] == {k: ANSWERS[k] for k in ("amount", "count", "urgent")}
    assert told["result"] == "orphan"
    assert "fields" not in told


VALUES = {
    "approver": ["x", True, 1, ["x"]],
    "amount": ["1", True, ["1"], 1, 1.5],
    "count": [5, 5.0, 5.5, "5", True],
    "urgent": [True, "true", 1],
    "zone": ["eu-1", "Canary", True, 1, ["eu-1"]],
    "tier": ["low", "high", True],
    "tags": [["a", "b"], ["a", "x"], [], "a", True],
    "password": ["x", 1, True],
    "pin": [1, "1", True],
    "card_type": ["visa", "x", 1],
}
KEPT_WITH_FORM = [
    ("amount", 1), ("amount", 1.5), ("count", 5), ("count", 5.0), ("urgent", True),
    ("zone", "eu-1"), ("tier", "low"), ("tags", ("a", "b")), ("tags", ()),
]  # fmt: skip
ASKS_CREDENTIAL = ("password", "pin", "card_type")
"""By key alone, which is all that is known without the form."""


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in VALUES.items() for value in values]
)
@pytest.mark.parametrize("correlated", [True, False], ids=["correlated", "alone"])
def test_what_is_kept_of_each_kind_of_field(field, value, correlated):
    """Every field kind and value, at every level, with and without the request."""
    play = Play()
    if correlated:
        play.take(request())
    outputs = play.take(accept({field: value}))
    values = form_of(outputs["metadata"])["values"]
    key = (field, tuple(value) if isinstance(value, list) else value)
    if correlated:
        kept = any(key == known and type(key[1]) is type(known[1]) for known in KEPT_WITH_FORM)
    else:
        number = isinstance(value, bool | int | float)
        kept = number and field not in ASKS_CREDENTIAL
    assert values == ({field: value} if kept else {})
    assert form_of(outputs["none"]) is None
    assert json.loads(outputs["full"].value) == accept({field: value})


FORM = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (request("not json"), "body_json"),
        (request('{"message":"m","message":"canary"}'), "body_json"),
        (request({"message": "canary"}), "body_schema"),
        (request({**FORM, "requestedSchema": {"type": "object", "properties": {"a": {
            "type": "string", "pattern": "^(a+)+$"}}}}), "body_schema"),
        (request({**FORM, "mode": "form"}, mode="url"), "body_mismatch"),
        (result({"action": "reject"}), "body_schema"),
        (result({"action": "decline"}), "body_mismatch"),
        (result({"action": "decline", "content": {"name": "canary"}}, action="decline"),
         "body_content"),
        (accept({"amount": 1}), "body_answer"),
        (accept({**ANSWERS, "amount": "canary"}), "body_answer"),
    ],
)  # fmt: skip
def test_a_nonconforming_body_costs_the_body_and_never_the_event(made, code):
    """It is routed, marked in the gaps, the extension and a header; at full it is unchanged."""
    play = Play()
    if made["type"].endswith("result"):
        play.take(request())
    outputs = play.take(made)
    assert json.loads(outputs["full"].value) == made
    metadata = json.loads(outputs["metadata"].value)
    pointer = f"/elicitation/{made['type'].rpartition('.')[2]}"
    assert {"path": pointer, "reason": code} in metadata["gaps"]
    assert form_of(outputs["metadata"])["body"] == code
    assert read_headers(outputs["metadata"].headers).body == code
    for level in BELOW_FULL:
        assert b"anary" not in outputs[level].value
        OFFICIAL.validate("event", json.loads(outputs[level].value))


def test_content_that_nobody_agreed_to_share_is_in_no_copy_below_full():
    """It came with a decline, and is counted."""
    play = Play()
    play.take(request())
    declined = result({"action": "decline", "content": {"amount": 7}}, action="decline")
    outputs = play.take(declined)
    assert "values" not in form_of(outputs["metadata"])
    assert play.outcome.finding.unshared


def test_every_result_is_classified():
    """In the extension of its copies."""
    play = Play()
    play.take(request())
    other_session = {**accept(ANSWERS, 2), "session": {"id": "s2"}}
    expected = [
        (other_session, "mismatched"),
        (accept(ANSWERS, 3), "matched"),
        (accept(ANSWERS, 4), "duplicate"),
        (result({"action": "decline"}, 5, "decline"), "conflicting"),
        ({**accept(ANSWERS, 6), "parentEventId": "e9"}, "orphan"),
    ]
    for made, classification in expected:
        assert form_of(play.take(made)["metadata"])["result"] == classification


def test_a_result_whose_body_was_not_selected_is_classified_too():
    """Correlation needs no body."""
    play = Play()
    play.take(request())
    outputs = play.take(result(None))
    assert form_of(outputs["metadata"]) == {"result": "matched"}
    assert read_headers(outputs["metadata"].headers).body is None


@pytest.mark.parametrize("level", ["metadata", "none"])
def test_the_copy_of_a_copy_is_the_copy(level):
    """A second hookbus finds the same fields, values and classification."""
    first, second = Play(), Play()
    for made in (request(), accept(ANSWERS), accept({"amount": "canary"}, 2)):
        once = first.take(made)[level].value
        assert second.take(json.loads(once))[level].value == once
        assert Play().take(json.loads(once))[level].value == once


def test_a_forged_extension_brings_no_text_through():
    """Whoever wrote it is not believed: only the shape of a metadata copy passes."""
    forged = result(None)
    forged["extensions"] = {
        "dev.hookbus.capture": {"level": "metadata"},
        "dev.hookbus.form": {
            "fields": [{"id": "a", "type": "select", "label": "canary", "required": False,
                        "choices": [{"id": "x", "label": "canary"}], "note": "canary"},
                       {"id": "password", "type": "number", "label": "p", "required": True}],
            "values": {"a": "canary", "b": "canary", "password": 4711},
            "body": "canary", "result": "canary", "more": "canary",
        },
    }  # fmt: skip
    output = Play().take(forged)["metadata"]
    assert b"canary" not in output.value
    assert form_of(output)["values"] == {}


def test_the_changes_of_the_pending_requests_go_with_the_outputs():
    """To the changelog, in the record's own partition, so that they are settled together."""
    play = Play()
    asked = play.take(request())["hookbus.pending.in"]
    answered = play.take(accept(ANSWERS))["hookbus.pending.in"]
    assert asked.key == answered.key
    assert asked.partition == answered.partition == 0
    assert "hookbus.pending.in" not in play.take(copy.deepcopy(accept(ANSWERS, 4)))


def test_a_second_result_that_comes_again_two_batches_later_is_classified_as_before():
    """Though its request was forgotten in between."""
    text = "bus: {sqlite: {path: bus.db}, max_poll_records: 5}\ncorrelation: {max_answered: 1}"
    pending = build.memory(parse(text)).pending
    reply = Reply(None, "s", "form", "d")
    for number in range(6):
        asked = Identity("urn:a", str(number))
        pending.ask(asked, Question(None, "s", "form", "t"), Moment(2 * number, 0))
        pending.answer(asked, reply, Moment(2 * number + 1, 0))
    first = Identity("urn:a", "0")
    assert pending.answer(first, reply, Moment(2, 0)).classification == "duplicate"
    assert pending.answer(first, reply, Moment(3, 0)).classification == "orphan"
    assert len(pending) == 6
    for number in range(6, 50):
        asked = Identity("urn:a", str(number))
        pending.ask(asked, Question(None, "s", "form", "t"), Moment(2 * number, 0))
        pending.answer(asked, reply, Moment(2 * number + 1, 0))
    assert len(pending) == 1 + 10
