"""Which answers stay at `metadata`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbus.codecs.elicitation import Bodies
from hookbus.codecs.form import Form
from hookbus.policies.forms import Values, structural_values
from hookbus.schemas.loader import load_elicitation
from tests.corpus import elicitations
from tests.corpus.elicitations import FIELDS, ODD

_BODIES = Bodies(load_elicitation())


def _form(properties: Any) -> Form:
    form = _BODIES.request(json.dumps(elicitations.form(properties)), "form")
    assert isinstance(form, Form)
    return form


_VALUES: dict[str, Any] = {
    "text": "some text",
    "text like a choice": "r",
    "label of a choice": "Red",
    "true": True,
    "integer": 3,
    "whole float": 5.0,
    "fraction": 0.5,
    "huge": 2**70,
    "no items": [],
    "choices": ["r", "g"],
    "repeated": ["r", "r"],
    "not all choices": ["r", "x"],
    "null": None,
    "nested": {"r": "r"},
}
_NUMBERS = {"integer", "whole float", "fraction", "huge"}
_MULTI = {"no items", "choices", "repeated"}
_KEPT: dict[str, set[str]] = {
    "string": set(),
    "date": set(),
    "uri": set(),
    "number": _NUMBERS,
    "integer": _NUMBERS - {"fraction"},
    "boolean": {"true"},
    "enum": {"text like a choice"},
    "enum, legacy": {"text like a choice"},
    "oneOf": {"text like a choice"},
    "multi enum": _MULTI,
    "multi anyOf": _MULTI,
    "no choice": set(),
    "no choices": {"no items"},
}
"""The values that a field of each kind keeps, with the form at hand."""


@pytest.mark.parametrize("kind", _KEPT)
@pytest.mark.parametrize("case", _VALUES)
def test_a_value_stays_only_where_the_form_has_its_type(kind: str, case: str) -> None:
    """With the form: booleans, numbers and choice ids, each for a field of that type."""
    value = _VALUES[case]
    kept = {"p": value} if case in _KEPT[kind] else {}
    assert structural_values(_form({"p": FIELDS[kind]}), {"p": value}) == Values(kept, 0)


@pytest.mark.parametrize("case", _VALUES)
def test_an_orphan_keeps_booleans_and_numbers(case: str) -> None:
    """Without the form nothing closes a choice, so text and lists go."""
    value = _VALUES[case]
    kept = {"p": value} if case in _NUMBERS | {"true"} else {}
    assert structural_values(None, {"p": value}) == Values(kept, 0)


@pytest.mark.parametrize("kind", _KEPT)
@pytest.mark.parametrize("case", _VALUES)
def test_a_credential_never_stays_and_is_counted(kind: str, case: str) -> None:
    """Whatever its field's type, told by key or title with the form, by key without."""
    value = _VALUES[case]
    titled = {**FIELDS[kind], "title": "Card number"}
    assert structural_values(_form({"pin": FIELDS[kind]}), {"pin": value}) == Values({}, 1)
    assert structural_values(_form({"p": titled}), {"p": value}) == Values({}, 1)
    assert structural_values(None, {"pin": value}) == Values({}, 1)


def test_an_unanswered_credential_is_not_counted() -> None:
    """Only values that had to go are counted, each once."""
    form = _form({"pin": FIELDS["integer"], "password": FIELDS["string"], "n": FIELDS["number"]})
    assert structural_values(form, {"pin": 1234, "n": 1}) == Values({"n": 1}, 1)
    assert structural_values(form, None) == Values({}, 0)


def test_keys_that_the_form_does_not_have_go() -> None:
    """An answer to nothing that was asked is content, whatever its type."""
    form = _form({"a": FIELDS["boolean"]})
    assert structural_values(form, {"b": True, "a": False, "c": 1}) == Values({"a": False}, 0)


def test_amounts_of_tokens_stay() -> None:
    """`max_tokens` is a number of tokens in a number field, and in a number without a form."""
    assert structural_values(_form({"max_tokens": FIELDS["integer"]}), {"max_tokens": 9}).kept
    assert structural_values(None, {"max_tokens": 9, "token_count": "x"}) == Values(
        {"max_tokens": 9}, 1
    )


_CANARY = "canary"


@given(
    content=st.dictionaries(
        st.sampled_from((*FIELDS, "extra")),
        st.one_of(
            st.sampled_from(ODD),
            st.sampled_from((_CANARY, [_CANARY], ["r", _CANARY], {_CANARY: _CANARY})),
        ),
    ),
    with_form=st.booleans(),
)
def test_no_free_text_stays(content: Any, with_form: bool) -> None:
    """A canary in any answer to any form is in no value that stays."""
    values = structural_values(_form(FIELDS) if with_form else None, content)
    assert _CANARY not in json.dumps(values.kept)
    assert all(content[key] == value for key, value in values.kept.items())
