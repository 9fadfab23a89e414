"""Answers to AEP requests, held against what was asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbus.codecs.aep_attention import Attention, check_answer, read_attention
from hookbus.codecs.decode import Decoder
from hookbus.codecs.elicitation import BodyFault
from hookbus.codecs.event import Event
from hookbus.codecs.strict import encode
from tests.corpus import aep_events as corpus

_DB = [{"id": "pg", "label": "PostgreSQL"}, {"id": "lite", "label": "SQLite"}]
_FORM: dict[str, Any] = {
    "kind": "form",
    "prompt": "p",
    "fields": [
        {"id": "name", "type": "string", "label": "Name", "required": True, "min": 9},
        {"id": "n", "type": "number", "label": "Count", "required": True, "min": 1, "max": 5},
        {"id": "ok", "type": "boolean", "label": "Sure?"},
        {"id": "db", "type": "select", "label": "Database", "required": True, "choices": _DB},
        {"id": "many", "type": "select", "label": "All", "multi": True, "choices": _DB},
        {"id": "any", "type": "select", "label": "Any", "other": True, "choices": _DB},
        {"id": "key", "type": "string", "label": "API key", "required": True},
    ],
}
_GOOD = {"name": "x", "n": 3, "db": "pg", "key": "k"}
_PERMISSION: dict[str, Any] = {
    "kind": "permission",
    "prompt": "p",
    "options": [
        {"id": "allow", "label": "Yes, run it"},
        {"id": "deny", "label": "No"},
        {"id": "never", "label": "no "},
    ],
}


def verdict(
    decoder: Decoder, asked: dict[str, Any], answer: dict[str, Any], level: str = "full"
) -> BodyFault | None:
    event = decoder.decode(
        encode(corpus.envelope("attention.answered", level, data={"answer": answer}))
    )
    assert isinstance(event, Event)
    return check_answer(read_attention(asked), event)


@pytest.mark.parametrize(
    ("change", "at", "rule"),
    [
        ({}, None, None),
        ({"n": 1.0, "ok": False, "many": ["pg", "lite"], "any": "MariaDB"}, None, None),
        ({"many": []}, None, None),
        ({"n": 0}, "/n", "minimum"),
        ({"n": 6}, "/n", "maximum"),
        ({"n": "3"}, "/n", "type"),
        ({"n": True}, "/n", "type"),
        ({"n": None}, "/n", "type"),
        ({"ok": 1}, "/ok", "type"),
        ({"name": 3}, "/name", "type"),
        ({"db": "MariaDB"}, "/db", "enum"),
        ({"db": ["pg"]}, "/db", "type"),
        ({"db": {"id": "pg"}}, "/db", "type"),
        ({"many": "pg"}, "/many", "type"),
        ({"many": ["pg", "x"]}, "/many", "enum"),
        ({"many": [["pg"]]}, "/many", "type"),
        ({"any": 3}, "/any", "type"),
        ({"what": 1}, "", "additionalProperties"),
    ],
)
def test_values_are_held_against_the_form(
    decoder: Decoder, change: dict[str, Any], at: str | None, rule: str | None
) -> None:
    """Types, bounds, cardinality, choices and unknown keys; hashable or not."""
    expected = None if rule is None else BodyFault("body_answer", f"/data/answer/values{at}", rule)
    assert verdict(decoder, _FORM, {"values": {**_GOOD, **change}}) == expected


def test_required_values_are_missed_at_full(decoder: Decoder) -> None:
    """Each of them, and all of them where there are no values at all."""
    missing = BodyFault("body_answer", "/data/answer/values", "required")
    for name in _GOOD:
        rest = {key: value for key, value in _GOOD.items() if key != name}
        assert verdict(decoder, _FORM, {"values": rest}) == missing
    assert verdict(decoder, _FORM, {"text": "no"}) == missing


def test_what_a_level_takes_away_is_not_missed(decoder: Decoder) -> None:
    """A copy that another hop made below full is no bad answer."""
    missing = BodyFault("body_answer", "/data/answer/values", "required")
    redacted = {"name": "x", "n": 3, "db": "pg"}
    assert verdict(decoder, _FORM, {"values": redacted}, "redacted") is None
    assert verdict(decoder, _FORM, {"values": {"n": 3, "db": "pg"}}, "redacted") == missing
    assert verdict(decoder, _FORM, {"values": {"n": 3}}, "metadata") is None
    assert verdict(decoder, _FORM, {"values": {}}, "metadata") == missing
    event = decoder.decode(encode(corpus.envelope("attention.answered", "none")))
    assert isinstance(event, Event)
    assert check_answer(read_attention(_FORM), event) is None


def test_a_request_may_ask_for_nothing_to_fill_in(decoder: Decoder) -> None:
    """Then any values go."""
    asked = {"kind": "input", "prompt": "p"}
    assert verdict(decoder, asked, {"text": "x", "values": {"y": 1}}) is None
    assert verdict(decoder, asked, {"option": "1"}) is None


@pytest.mark.parametrize(
    ("answer", "fine"),
    [
        ({"option": "allow"}, True),
        ({"option": "Allow"}, False),
        ({"option": "deny", "text": "because"}, True),
        ({"text": " ALLOW "}, True),
        ({"text": "yes, run it"}, True),
        ({"text": "no"}, False),
        ({"text": "sure, go ahead"}, False),
        ({}, True),
    ],
)
def test_a_text_that_chooses_no_option_is_never_consent(
    decoder: Decoder, answer: dict[str, Any], fine: bool
) -> None:
    """A label counts if it is exactly one option's; nothing of a text that doesn't is guessed."""
    fault = None if fine else BodyFault("body_answer", "/data/answer/option", "enum")
    assert verdict(decoder, _PERMISSION, answer) == fault


def test_free_text_is_an_answer_where_no_permission_is_asked(decoder: Decoder) -> None:
    """Options are suggestions there."""
    assert verdict(decoder, {**_PERMISSION, "kind": "input"}, {"text": "something else"}) is None


@given(st.text(), st.text(max_size=3), st.sampled_from([" ", "", "\t\n"]))
def test_an_option_is_found_by_its_id(identity: str, other: str, blank: str) -> None:
    """Regardless of case and of blanks around it, and before any label."""
    asked = read_attention(
        {
            "kind": "permission",
            "options": [{"id": other, "label": identity}, {"id": identity, "label": "x"}],
        }
    )
    said = f"{blank}{identity}{blank}"
    found = asked.option_of(said)
    assert found is not None
    assert found.strip().casefold() == identity.strip().casefold()


def test_what_is_kept_of_a_request_holds_no_prompt() -> None:
    """Nor the labels of its fields; they are read once, for what asks for a credential."""
    asked = read_attention({**_FORM, "prompt": "secret"})
    assert isinstance(asked, Attention)
    assert "secret" not in repr(asked)
    assert "API key" not in repr(asked)
    assert asked.form is not None
    assert [field.id for field in asked.form.fields if field.asks_credential] == ["key"]
