"""AHP said in AEP, and AEP forms said in AHP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agenthooksprotocol.runtime import Validator

from hookbus.codecs.aep import AepJudge
from hookbus.codecs.aep_from_ahp import ToAep
from hookbus.codecs.ahp_from_aep import SaidInAhp, to_ahp
from hookbus.codecs.bridge import COUNTERPARTS, SAYABLE, Shown, Unsaid
from hookbus.codecs.elicitation import Answer, Bodies
from hookbus.codecs.form import Form, field_specs
from hookbus.codecs.strict import encode
from hookbus.schemas.loader import aep_types, event_types, load, load_aep, load_elicitation
from tests.corpus import elicitations, events
from tests.upstream import load_json, needs_upstream

BODIES = Bodies(load_elicitation())
TO_AEP = ToAep(BODIES)
JUDGE = AepJudge(load_aep())
OFFICIAL = Validator()
FORMS = [body for body in elicitations.requests() if body.get("mode", "form") == "form"]
ANSWERS = {"s": "a", "n": 1, "f": 5.5, "b": True, "l": ["r", "r"], "e": []}

Tree = dict[str, Any]


def event(kind: str, **members: Any) -> Tree:
    """The maximal event of a type, with other members."""
    return {**events.maximal()[kind], **members}


def elicitation(kind: str, body: Tree | None, **members: Any) -> Tree:
    """An elicitation event with this body."""
    made: Tree = {"server": "deployer", "mode": "form", **members}
    if body is not None:
        made[kind] = {
            "id": "part-1", "kind": "text", "mediaType": "text/plain", "selection": "body",
            "text": json.dumps(body),
        }  # fmt: skip
    return event(f"user.elicitation.{kind}", elicitation=made)


def said(tree: Tree, level: str = "full", form: Tree | None = None) -> Tree:
    """The AEP event, the first one if there are two; all are valid."""
    made = TO_AEP.say(tree, Shown(tree, level, form or {}), 7)
    assert not isinstance(made, Unsaid), made
    assert [JUDGE.event(each, encode(each)) for each in made] == [None] * len(made)
    return made[0]


def back(tree: Tree, level: str = "full") -> SaidInAhp:
    """The AHP event, which is valid."""
    made = to_ahp(tree, level)
    assert isinstance(made, SaidInAhp), made
    OFFICIAL.validate("event", made.tree)
    return made


def test_the_table_names_types_that_there_are():
    """Each on its side."""
    assert set(COUNTERPARTS) <= set(event_types(load()))
    named = {kind for kinds in COUNTERPARTS.values() for kind in kinds}
    assert named | set(SAYABLE) <= set(aep_types(load_aep()))


def test_an_event_keeps_its_identity_and_gets_a_place_in_its_session():
    """The same record has the same place."""
    tree = event("tool.before")
    made = said(tree)
    assert {name: value for name, value in made.items() if name != "data"} == {
        "aep": "0.1",
        "id": tree["id"],
        "type": "tool.requested",
        "subject": "deploy",
        "time": tree["time"],
        "source": tree["source"],
        "agent": "demo-harness",
        "session": "session-1",
        "run": "turn-1",
        "seq": 14,
        "cause": "event-0",
        "capture": "full",
        "ahptype": "tool.before",
        "ahpversion": "1.0.0",
    }


@pytest.mark.parametrize(
    ("tree", "kind", "data"),
    [
        (
            event("session.start"),
            "session.started",
            {
                "client": {"name": "demo-harness", "version": "1.0.0"},
                "gen_ai.request.model": "model-1",
                "cwd": "/canary/cwd",
            },
        ),
        (event("session.end", outcome="completed"), "session.ended", {"reason": "normal"}),
        (event("session.end", outcome="cancelled"), "session.ended", {}),
        (event("turn.start", trigger="user", items=[]), "run.started", {"trigger": "user"}),
        (event("turn.start", trigger="hook", items=[]), "run.started", {}),
        (event("turn.end", outcome="max_iterations", items=[], error=None), "run.failed", None),
        (event("turn.end", outcome="cancelled"), "run.cancelled", {}),
        (
            event("tool.before"),
            "tool.requested",
            {
                "tool": {"name": "deploy", "call_id": "call-1"},
                "args": {"canary": {"deep": ["canary-input", {"id": "canary-id"}]}},
            },
        ),
        (
            event("tool.after", outcome="ok", items=[], durationMs=2.7),
            "tool.completed",
            {
                "tool": {"name": "deploy", "call_id": "call-1"},
                "duration_ms": 2,
                "status": "ok",
            },
        ),
        (
            event("tool.after", outcome="denied"),
            "tool.denied",
            {"tool": {"name": "deploy", "call_id": "call-1"}, "by": "policy"},
        ),
        (
            event("tool.after", outcome="error", durationMs=3),
            "tool.failed",
            {
                "tool": {"name": "deploy", "call_id": "call-1"},
                "duration_ms": 3,
                "error": {"type": "io", "message": "canary-error"},
            },
        ),
    ],
)
def test_an_event_is_said_by_its_counterpart(tree, kind, data):
    """The table in `hookbus.codecs.bridge`, with what AEP has members for."""
    if data is None:
        del tree["error"]
        data = {"reason": "max_iterations"}
    made = said(tree)
    assert (made["type"], made["data"]) == (kind, data)


def test_a_completed_turn_tells_its_usage():
    """Counts and costs are structure."""
    tree = event("turn.end", outcome="completed", items=[])
    del tree["error"]
    made = said(tree, "metadata")
    usage = tree["usage"]
    assert made["type"] == "run.finished"
    assert made["data"]["gen_ai.usage.input_tokens"] == usage["inputTokens"]
    assert made["data"]["cost"]["total"] == usage["cost"]["amount"]


def test_at_redacted_content_is_where_redacted_content_belongs():
    """Members that need `full` are not used below."""
    assert "args_redacted" in said(event("tool.before"), "redacted")["data"]
    tree = event("tool.after", outcome="ok")
    del tree["error"]
    assert "result_redacted" in said(tree, "redacted")["data"]


@pytest.mark.parametrize(
    ("kind", "told", "extension"), [("auth", "auth", None), ("question", "other", "question")]
)
def test_a_call_for_attention_keeps_its_kind(kind, told, extension):
    """In an extension attribute where AEP doesn't have it."""
    tree = event("user.attention")
    tree["attention"] = {**tree["attention"], "kind": kind, "message": [], "title": []}
    made = said(tree)
    assert made["data"] == {"kind": told, "prompt": f"demo-harness requests {told}"}
    assert made.get("ahpkind") == extension


@pytest.mark.parametrize("kind", sorted(set(event_types(load())) - set(COUNTERPARTS)))
def test_a_type_without_a_counterpart_is_not_said(kind):
    """It is a value, not an exception."""
    tree = event(kind)
    assert TO_AEP.say(tree, Shown(tree, "full", {}), 7) == Unsaid("no_counterpart")


def test_an_event_outside_a_session_is_not_said():
    """AEP orders such events within a session."""
    tree = event("tool.before")
    del tree["session"]
    assert TO_AEP.say(tree, Shown(tree, "full", {}), 7) == Unsaid("no_session")


def test_an_answer_to_nothing_is_not_said():
    """AEP-0002 §7.1 has an answer name its request."""
    tree = elicitation("result", None, action="cancel")
    del tree["parentEventId"]
    assert TO_AEP.say(tree, Shown(tree, "full", {}), 7) == Unsaid("no_request")


@needs_upstream
@pytest.mark.parametrize(
    ("level", "fixture"), [("full", "expected_data"), ("metadata", "expected_data_metadata")]
)
def test_a_form_is_mapped_as_aep_pins_it(level, fixture):
    """Fixture mappings/claude-code.json, `elicitation`; but a bus offers no way to respond."""
    case = load_json("fixtures/mappings/claude-code.json")["elicitation"]
    tree = elicitation("request", case["input"])
    tree["harness"] = {**tree["harness"], "name": "claude-code"}
    form = BODIES.request(json.dumps(case["input"]), "form")
    assert isinstance(form, Form)
    structure = {"fields": field_specs(form, labels=False)}
    made = said(tree, level, structure)
    assert {**made["data"], "respond_via": ["control"]} == case[fixture]


@needs_upstream
@pytest.mark.parametrize("member", ["expected_data", "expected_data_metadata"])
def test_the_pinned_questions_become_a_form_of_mcp(member):
    """Fixture mappings/claude-code.json, `ask_user_question`: selects that take other answers."""
    case = load_json("fixtures/mappings/claude-code.json")["ask_user_question"]
    made = {**said(elicitation("request", FORMS[0])), "data": case[member]}
    params = json.loads(back(made).tree["elicitation"]["request"]["text"])
    form = BODIES.request(json.dumps(params), "form")
    assert isinstance(form, Form)
    assert [field.id for field in form.fields] == ["1", "2"]
    assert {field.type for field in form.fields} == {"string"}


@pytest.mark.parametrize("body", FORMS, ids=lambda body: json.dumps(body)[:60])
def test_a_form_comes_back_with_its_fields(body):
    """Ids, types, labels, choices, bounds, and what is required; server and mode."""
    tree = elicitation("request", body)
    asked = BODIES.request(json.dumps(body), "form")
    assert isinstance(asked, Form)
    made = back(said(tree)).tree
    again = BODIES.request(made["elicitation"]["request"]["text"], "form")
    assert isinstance(again, Form)
    assert again.message == asked.message
    assert field_specs(again, labels=True) == field_specs(asked, labels=True)
    for name in ("id", "source", "type", "time", "harness", "parentEventId"):
        assert made[name] == tree[name]
    assert made["session"]["id"] == tree["session"]["id"]
    assert made["elicitation"]["server"] == "deployer"
    assert made["elicitation"]["mode"] == "form"


def test_a_url_comes_back_from_full_and_from_no_other_level():
    """Extension attributes pass every hop, so a URL is in none of them."""
    body = elicitations.requests()[-2]
    tree = elicitation("request", body, mode="url")
    made = said(tree)
    assert made["data"]["kind"] == "other"
    assert made["data"]["context"] == {"url": body["url"], "elicitationId": "1"}
    assert json.loads(back(made).tree["elicitation"]["request"]["text"]) == body
    for level in ("none", "metadata", "redacted"):
        assert body["url"] not in encode(said(tree, level)).decode()


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
@pytest.mark.parametrize("mode", ["form", "url"])
def test_an_answer_comes_back_with_its_action_and_values(action, mode):
    """AEP can't tell a refusal from a dismissal; the extension attribute does."""
    body: Tree = {"action": action}
    if (action, mode) == ("accept", "form"):
        body["content"] = ANSWERS
    tree = elicitation("result", body, action=action, mode=mode)
    made = said(tree)
    accepted = action == "accept"
    assert made["type"] == ("attention.answered" if accepted else "attention.resolved")
    assert made["subject"] == tree["parentEventId"]
    again = back(made).tree
    assert again["parentEventId"] == tree["parentEventId"]
    text = again["elicitation"].pop("result")["text"]
    assert again["elicitation"] == {"server": "deployer", "mode": mode, "action": action}
    answer = BODIES.result(text, mode, action)  # type: ignore[arg-type]
    assert answer == Answer(action, body.get("content"))  # type: ignore[arg-type]


def test_an_accepted_answer_also_resolves_its_request():
    """AEP holds a request open until something ends it; both have their own identity and place."""
    tree = elicitation("result", {"action": "accept", "content": ANSWERS}, action="accept")
    made = TO_AEP.say(tree, Shown(tree, "full", {}), 7)
    assert not isinstance(made, Unsaid)
    answered, resolved = made
    assert resolved["type"] == "attention.resolved"
    assert resolved["data"] == {"resolution": "answered"}
    assert (resolved["subject"], resolved["cause"]) == (answered["subject"], answered["id"])
    assert (answered["seq"], resolved["seq"]) == (14, 15)
    assert resolved["id"] == f"{answered['id']}.resolved"
    assert to_ahp(resolved, "full") == Unsaid("no_counterpart")


def test_answers_to_no_field_of_the_form_are_not_said():
    """At no level (AEP-0002 §5.3)."""
    body = {"action": "accept", "content": {"zone": "eu", "more": "canary"}}
    form = {"fields": [{"id": "zone", "type": "string", "label": "zone", "required": True}]}
    made = said(elicitation("result", body, action="accept"), "full", form)
    assert made["data"] == {"answer": {"values": {"zone": "eu"}}}


def test_answers_that_are_credentials_are_said_at_full_alone():
    """Whatever the emitter of a redacted event claims."""
    body = {"action": "accept", "content": {"password": "canary", "zone": "eu"}}
    tree = elicitation("result", body, action="accept")
    assert said(tree, "redacted")["data"] == {"answer": {"values": {"zone": "eu"}}}


def test_a_nonconforming_body_is_told_by_its_code_and_kept_at_full():
    """An audit wants to know what was asked; other levels do not say it."""
    tree = elicitation("request", {"message": "canary"})
    form = {"body": "body_schema"}
    made = said(tree, "full", form)
    assert made["ahpbody"] == "body_schema"
    assert json.loads(made["data"]["context"]["body"]) == {"message": "canary"}
    assert "canary" not in encode(said(tree, "redacted", form)).decode()


def test_structure_is_said_where_the_body_is_not_at_hand():
    """What a copy tells of its form is what AEP gets."""
    fields = [{"id": "zone", "type": "boolean", "label": "zone", "required": True}]
    made = said(elicitation("request", None), "metadata", {"fields": fields})
    assert made["data"] == {
        "kind": "form",
        "prompt": "demo-harness requests input (1 fields)",
        "fields": fields,
    }
    answered = said(
        elicitation("result", None, action="accept"),
        "metadata",
        {"values": {"zone": True}, "result": "matched"},
    )
    assert answered["data"] == {"answer": {"values": {"zone": True}}}
    assert answered["ahpresult"] == "matched"
    assert back(answered, "metadata").form == {"values": {"zone": True}}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("attention.requested", {"kind": "permission", "prompt": "May I?"}),
        ("attention.answered", {"answer": {"option": "allow"}}),
        ("attention.resolved", {"resolution": "answered"}),
        ("tool.requested", {"tool": {"name": "a"}}),
    ],
)
def test_what_ahp_has_no_word_for_is_not_said(kind, data):
    """Only forms and their answers have a counterpart."""
    made = {**said(elicitation("request", FORMS[0])), "type": kind, "data": data}
    del made["ahptype"]
    assert to_ahp(made, "full") == Unsaid("no_counterpart")


def test_what_a_foreign_form_holds_besides_structure_stays_behind():
    """Below `redacted` labels are ids, and members that AEP doesn't have are no structure."""
    choice = {"id": "eu", "label": "canary", "canary": 1}
    field = {"id": "zone", "type": "select", "label": "canary", "canary": 1, "choices": [choice]}
    made = said(elicitation("request", FORMS[0]))
    made["data"] = {"kind": "form", "prompt": "canary", "fields": [field, field]}
    told = back(made, "metadata")
    assert told.form == {
        "fields": [
            {
                "id": "zone",
                "type": "select",
                "choices": [{"id": "eu", "label": "eu"}],
                "label": "zone",
            }
        ]
    }
    assert "request" not in told.tree["elicitation"]
