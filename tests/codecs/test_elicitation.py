"""What is said of an elicitation body, and what never is."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookbus.codecs import form_types
from hookbus.codecs.elicitation import Answer, Bodies, BodyFault, UrlRequest
from hookbus.codecs.form import Form
from hookbus.schemas.loader import load_elicitation
from tests.corpus import elicitations

CANARY = "canary"

_BODIES = Bodies(load_elicitation())
_AT = "/requestedSchema/properties"


def _request(body: Any, mode: Any = "form") -> Any:
    return _BODIES.request(json.dumps(body), mode)


def _result(body: Any, mode: Any = "form", action: Any = "accept") -> Any:
    return _BODIES.result(json.dumps(body), mode, action)


def test_a_body_without_mode_is_a_form() -> None:
    """An absent mode means form, and agrees with a form event only (C52)."""
    body = elicitations.form({"name": {"type": "string"}}, ["name"])
    assert isinstance(_request(body, "form"), Form)
    assert _request(body, "url") == BodyFault("body_mismatch", "/mode")


def test_content_is_for_accepted_forms_only() -> None:
    """Content with decline, cancel or url mode is a fault; cancel needs none (C54)."""
    fault = BodyFault("body_content", "/content")
    typed = {"content": {"name": CANARY}}
    assert _result({"action": "cancel"}, action="cancel") == Answer("cancel")
    assert _result({"action": "decline", **typed}, action="decline") == fault
    assert _result({"action": "cancel", "content": {}}, action="cancel") == fault
    assert _result({"action": "accept", **typed}, mode="url") == fault
    assert _result({"action": "accept", **typed}) == Answer("accept", typed["content"])


def test_an_action_has_no_synonyms() -> None:
    """`reject` is no action (C56), and an action has to be the event's."""
    assert _result({"action": "reject"}) == BodyFault("body_schema", "/action", "enum")
    assert _result({"action": "decline"}) == BodyFault("body_mismatch", "/action")


@pytest.mark.parametrize(
    ("field", "valid"),
    [
        ({"oneOf": [{"const": "low", "title": "Low"}]}, False),
        ({"type": "string", "oneOf": [{"const": "low", "title": "Low"}]}, True),
        ({"type": "string", "oneOf": [{"const": "low"}]}, False),
        ({"type": "string", "oneOf": [{"const": 1, "title": "One"}]}, False),
        ({"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}]}}, True),
        ({"type": "array", "items": {"oneOf": [{"const": "r", "title": "Red"}]}}, False),
        ({"type": "array", "items": {"type": "string"}}, False),
        ({"type": "array", "enum": ["r"]}, False),
        ({"type": "string", "format": "password"}, False),
        ({"type": "integer", "title": None}, False),
    ],
)
def test_choices_have_the_closed_spellings(field: Any, valid: bool) -> None:
    """A property schema is one of the MCP kinds, or the form is none (C57, C74, and C64's null)."""
    assert isinstance(_request(elicitations.form({"p": field})), Form if valid else BodyFault)


@pytest.mark.parametrize("extra", [{"title": "T"}, {"description": "D"}, {"$id": "urn:x"}])
def test_a_form_with_more_than_the_vocabulary_is_none(extra: Any) -> None:
    """`requestedSchema` is closed, however common the member is in the field (C62)."""
    body = elicitations.form({"v": {"type": "string"}})
    body["requestedSchema"] |= extra
    fault = BodyFault("body_schema", "/requestedSchema", "additionalProperties")
    assert _request(body) == fault


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://example.test@evil.example/x"])
def test_a_valid_url_may_be_unsafe(url: str) -> None:
    """Any URI is a URL, so validity says nothing about safety (C66)."""
    body = {"mode": "url", "message": "m", "elicitationId": "1", "url": url}
    assert _request(body, "url") == UrlRequest("m", url, "1")


@pytest.mark.parametrize("url", ["example.com", "https://x y", "https://x\n"])
def test_a_url_is_a_uri(url: str) -> None:
    """What is no URI is refused, a trailing newline too."""
    body = {"mode": "url", "message": "m", "elicitationId": "1", "url": url}
    assert _request(body, "url") == BodyFault("body_schema", "/url", "format")


def test_property_names_are_data() -> None:
    """A name that looks like code, a keyword or a reference names a field (C77)."""
    names = ["a'+__import__('os').system('id')+'", "$ref", "{x}", "__class__", "../..", "requested"]
    form = _request(elicitations.form({name: {"type": "string"} for name in names}))
    assert [field.id for field in form.fields] == names


_WATCHING = """
import json, sys
from hookbus.codecs.elicitation import Bodies
from hookbus.schemas.loader import load_elicitation

bodies, texts, seen = Bodies(load_elicitation()), json.load(sys.stdin), []
sys.addaudithook(lambda name, _: seen.append(name))
verdicts = [bodies.request(text, "form") for text in texts]
seen = list(seen)
print(json.dumps([seen, [[verdict.code, verdict.path] for verdict in verdicts]]))
"""
"""Judges the forms on stdin, and tells what the interpreter was asked to do meanwhile."""


def test_nothing_in_a_form_is_compiled_or_fetched() -> None:
    """A reference, a pattern or a nested object is refused by a verdict alone (C76, C77)."""
    fields: list[Any] = [
        {"$ref": "http://169.254.169.254/latest/meta-data/"},
        {"type": "string", "$ref": "http://169.254.169.254/latest/meta-data/"},
        {"type": "string", "pattern": "^(a+)+$"},
        {"type": "object", "properties": {}},
    ]
    texts = [json.dumps(elicitations.form({"p": field})) for field in fields]
    command = [sys.executable, "-c", _WATCHING]
    ran = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True)
    seen, verdicts = json.loads(ran.stdout)
    assert verdicts == [["body_schema", _AT]] * len(fields)
    assert not {"compile", "exec", "import", "open", "socket.connect", "urllib.Request"} & {*seen}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"message":"a","message":"b"}', "duplicate_key"),
        ('{"message":NaN}', "invalid_json"),
        ('{"message":1e999}', "number_range"),
        ("[" * 1000 + "]" * 1000, "too_deep"),
        ('"\\ud800"', "invalid_utf8"),
        ('"\ud800"', "invalid_utf8"),
        ("", "invalid_json"),
        (" " * (256 * 1024), "invalid_json"),
        (" " * (256 * 1024 + 1), "too_large"),
        ("\u00e9" * (128 * 1024 + 1), "too_large"),
    ],
)
def test_a_body_is_parsed_as_strictly_as_an_event(text: str, rule: str) -> None:
    """What two parsers could read differently, or what is too large, is no body."""
    fault = BodyFault("body_json", rule=rule)
    assert _BODIES.request(text, "form") == fault
    assert _BODIES.result(text, "form", "accept") == fault


def _crowd(count: int, *, fields: bool) -> Any:
    if fields:
        return elicitations.form({f"{number}": {"type": "string"} for number in range(count)})
    half = {"type": "string", "enum": [""] * (count // 2)}
    return elicitations.form(
        {"a": half, "b": {"type": "array", "items": half}, "c": {"type": "string", "enum": []}}
    )


def test_counts_are_capped() -> None:
    """A form has at most 1,000 fields and 10,000 choices in all; so have the answers."""
    assert isinstance(_request(_crowd(1_000, fields=True)), Form)
    assert isinstance(_request(_crowd(10_000, fields=False)), Form)
    assert _request(_crowd(1_001, fields=True)) == BodyFault("body_schema", _AT, "maxProperties")
    assert _request(_crowd(10_002, fields=False)) == BodyFault("body_schema", _AT, "maxItems")
    many = {"action": "accept", "content": {f"{number}": 0 for number in range(1_001)}}
    assert _result(many) == BodyFault("body_schema", "/content", "maxProperties")
    long = {"action": "accept", "content": {"a": ["r"] * 10_001}}
    assert _result(long) == BodyFault("body_schema", "/content", "maxItems")


def test_a_huge_form_is_refused_before_it_is_read() -> None:
    """200,000 properties never reach the parser, and 2,000 never the validators (C76)."""
    unfinished = '{"requestedSchema":{"properties":{' + '"p":{"type":"string"},' * 200_000
    assert _BODIES.request(unfinished, "form") == BodyFault("body_json", rule="too_large")
    nulls = elicitations.form({f"{number}": None for number in range(2_000)})
    assert _request(nulls).rule == "maxProperties"


def _crowded(size: int) -> Any:
    body = _crowd(size, fields=True)
    body["requestedSchema"]["required"] = [f"{number}" for number in range(size - 1)] * 15
    return body


def _spaced(size: int) -> Any:
    return elicitations.form({"." * 200 * size: {"type": "string", "x": 1}})


def _strange(size: int) -> Any:
    return elicitations.form({"p": {"type": "string", **{f"{n}": n for n in range(15 * size)}}})


def _calls(body: Any) -> int:
    """How many calls the verdict on a body takes."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    text = json.dumps(body)
    sys.setprofile(count)
    try:
        _BODIES.request(text, "form")
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("make", [_crowded, _spaced, _strange])
def test_the_work_on_a_body_grows_no_faster_than_the_body(make: Any) -> None:
    """No body holds the loop for long, up to 256 KiB and even where it is refused."""
    assert _calls(make(1_000)) <= 12 * _calls(make(100))


def test_the_largest_bodies_get_their_verdicts() -> None:
    """At the caps, and at the most that fits."""
    assert isinstance(_request(_crowded(1_000)), Form)
    assert [_request(make(1_000)).code for make in (_spaced, _strange)] == ["body_schema"] * 2


def _marked(node: Any, keys: bool) -> Any:
    """A body with the canary in every string that the vocabulary doesn't fix."""
    if isinstance(node, dict):
        return {
            f"{CANARY} {key}" if keys else key: _marked(member, key == "properties")
            if key != "type" and key != "format"
            else member
            for key, member in node.items()
        }
    if isinstance(node, list):
        return [_marked(item, keys=False) for item in node]
    return f"urn:{CANARY}" if isinstance(node, str) and node not in ("form", "url") else node


_CANARIES = [_marked(body, keys=False) for body in elicitations.requests()]
_ANSWERS = [
    {"action": action, "content": {f"{CANARY} {n}": value}}
    for action in ("accept", "decline", CANARY)
    for n, value in enumerate([f"{CANARY}", [CANARY], {CANARY: CANARY}, [[CANARY]], None])
]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    request=elicitations.near(_CANARIES),
    result=elicitations.near(_ANSWERS),
    mode=st.sampled_from(("form", "url")),
)
def test_a_fault_quotes_nothing_of_a_body(request: Any, result: Any, mode: Any) -> None:
    """A canary stands in all values, property names and unnamed members, and in no fault."""
    for verdict in (_request(request, mode), _result(result, mode)):
        assert not isinstance(verdict, BodyFault) or CANARY not in repr(verdict)


@pytest.mark.parametrize(
    "text", ['{"message":"canary","message":"canary"}', '{"canary":1,"canary":1}']
)
def test_a_fault_of_the_parser_quotes_nothing(text: str) -> None:
    """A repeated key isn't named."""
    assert CANARY not in repr(_BODIES.request(text, "form"))


def test_a_judge_whose_formats_fail_is_not_built() -> None:
    """The self-test refuses to start where a bad URL would pass."""
    schemas = load_elicitation()
    del schemas["definitions"]["urlParams"]["properties"]["url"]["format"]
    with pytest.raises(RuntimeError):
        Bodies(schemas)


def test_the_fast_types_survive_a_deep_value() -> None:
    """Whatever the types can't convert is left to the schema, without an error."""
    assert not form_types.are_form_params(None)
    assert not form_types.are_form_params({"message": "m", "requestedSchema": {"type": "object"}})
