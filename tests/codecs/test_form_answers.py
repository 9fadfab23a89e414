"""Answers are judged as the form's own JSON Schema would judge them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookbus.codecs.answers import check_answers
from hookbus.codecs.elicitation import Bodies, BodyFault
from hookbus.codecs.form import Form
from hookbus.schemas.loader import load_elicitation
from tests.codecs.conftest import EXAMPLES, Official
from tests.corpus import elicitations
from tests.corpus.elicitations import FIELDS, ODD

_BODIES = Bodies(load_elicitation())


def _form(params: Any) -> Form:
    form = _BODIES.request(json.dumps(params), "form")
    assert isinstance(form, Form)
    return form


def _fault(properties: Any, content: Any, required: Any = ()) -> BodyFault | None:
    return check_answers(_form(elicitations.form(properties, required)), content)


@pytest.mark.parametrize("kind", FIELDS)
def test_every_value_for_every_kind_of_field(official: Official, kind: str) -> None:
    """Every kind of field takes exactly the values that the official validator lets it take."""
    params = elicitations.form({"p": FIELDS[kind]}, ["p"])
    form = _form(params)
    for value in ODD:
        answer = {"schema": params["requestedSchema"], "value": {"p": value}}
        assert (check_answers(form, {"p": value}) is None) == official.accepts(
            "form-answer", answer
        ), value


_BOUNDS = st.one_of(st.integers(-1, 4), st.floats(-1, 4), st.sampled_from((2**64, -1e300)))
_IDS = st.lists(st.sampled_from(("r", "g", "", "Red", "\u00e9")), max_size=3)
_CHOICES = _IDS.map(lambda ids: [{"const": each, "title": each.upper()} for each in ids])


def _fields() -> st.SearchStrategy[Any]:
    def some(required: Any, optional: Any) -> st.SearchStrategy[Any]:
        return st.fixed_dictionaries(required, optional=optional)

    text = {"minLength": _BOUNDS, "maxLength": _BOUNDS, "default": st.just("x")}
    text["format"] = st.sampled_from(("date", "date-time", "email", "uri"))
    items = st.one_of(
        some({"type": st.just("string"), "enum": _IDS}, {}), some({"anyOf": _CHOICES}, {})
    )
    return st.one_of(
        some({"type": st.just("string")}, text),
        some({"type": st.just("string"), "enum": _IDS}, {"enumNames": _IDS}),
        some({"type": st.just("string"), "oneOf": _CHOICES}, {}),
        some(
            {"type": st.sampled_from(("number", "integer"))},
            {"minimum": _BOUNDS, "maximum": _BOUNDS, "default": st.just(0)},
        ),
        some({"type": st.just("boolean")}, {}),
        some(
            {"type": st.just("array"), "items": items}, {"minItems": _BOUNDS, "maxItems": _BOUNDS}
        ),
    )


_KEYS = ("a", "b", "", "$ref", "a/b~", "\u00e9")
_VALUES = st.one_of(st.sampled_from(ODD), _BOUNDS, _IDS, st.text(max_size=3))


@settings(
    max_examples=EXAMPLES // 3,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(
    properties=st.dictionaries(st.sampled_from(_KEYS), _fields(), max_size=4),
    required=st.lists(st.sampled_from(_KEYS), max_size=2),
    content=st.dictionaries(st.sampled_from((*_KEYS, "extra")), _VALUES, max_size=5),
)
def test_answers_are_judged_as_by_the_official_validator(
    official: Official, properties: Any, required: Any, content: Any
) -> None:
    """Any answers to any form get the verdict of the form's own schema."""
    params = elicitations.form(properties, required)
    answer = {"schema": params["requestedSchema"], "value": content}
    assert (check_answers(_form(params), content) is None) == official.accepts(
        "form-answer", answer
    )


@pytest.mark.parametrize(
    ("value", "rule"),
    [(3, None), (3.0, None), ("3", "type"), (True, "type"), (3.5, "type"), (0, "minimum")],
)
def test_an_integer_is_never_converted(value: Any, rule: str | None) -> None:
    """A whole float is an integer; a string, a boolean or a fraction isn't (C59)."""
    fault = _fault({"n": {"type": "integer", "minimum": 1}}, {"n": value})
    assert fault == (rule and BodyFault("body_answer", "/content/n", rule))


@pytest.mark.parametrize(
    ("format", "value", "satisfies"),
    [
        ("date", "2026-02-28", True),
        ("date", "02/28/2026", False),
        ("date", "2026-02-30", False),
        ("date-time", "2026-02-28T10:00", False),
        ("date-time", "2026-02-28T10:00:00", False),
        ("date-time", "2026-02-28T10:00:00Z", True),
        ("date-time", "2026-02-28T10:00:00Z\n", False),
        ("date-time", "2026-12-31T23:59:60Z", True),
        ("date", "2026-02-28\n", False),
        ("uri", "example.com", False),
        ("uri", "https://example.com", True),
        ("email", "a@b", True),
        ("email", "a.b", False),
    ],
)
def test_formats_are_checked(format: str, value: str, satisfies: bool) -> None:  # noqa: A002
    """A format is a condition, with the RFCs' reading of time (C61)."""
    assert (_fault({"p": {"type": "string", "format": format}}, {"p": value}) is None) == satisfies


@pytest.mark.parametrize(
    ("chosen", "rule"),
    [
        *((["r"], None), ([], None), (["r", "r"], None)),
        *((["Red"], "anyOf"), ("r", "type"), ([1], "type")),
    ],
)
def test_titled_multiple_choice_takes_a_list_of_ids(chosen: Any, rule: str | None) -> None:
    """A label is no choice, a lone id no list, and choosing twice is allowed (C74)."""
    items = {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
    fault = _fault({"c": {"type": "array", "items": items}}, {"c": chosen})
    assert fault == (rule and BodyFault("body_answer", "/content/c", rule))


def test_no_content_counts_as_no_answers() -> None:
    """Only a form that requires nothing is satisfied by a result without content."""
    field = {"p": {"type": "string"}}
    assert _fault(field, None) is None
    assert _fault(field, None, ["p"]) == BodyFault("body_answer", "/content", "required")


def test_a_default_is_no_answer() -> None:
    """A required field with a default still has to be answered."""
    assert _fault({"p": {"type": "string", "default": "d"}}, {}, ["p"]) is not None


def test_a_path_quotes_a_key_of_the_form_escaped() -> None:
    """The path names the field as a JSON Pointer, and nothing of what was answered."""
    fault = _fault({"a/b~": {"type": "boolean"}}, {"a/b~": "canary"})
    assert fault == BodyFault("body_answer", "/content/a~1b~0", "type")
