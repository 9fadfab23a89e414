"""The form that a request asks, its AEP field_specs, and which fields ask for a credential."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from hookbus.codecs.credentials import asks_credential
from hookbus.codecs.elicitation import Bodies
from hookbus.codecs.form import Choice, Field, Form, field_specs
from hookbus.schemas.loader import load_elicitation
from tests.corpus import elicitations

_BODIES = Bodies(load_elicitation())


def _form(properties: Any, required: Any = ()) -> Form:
    form = _BODIES.request(json.dumps(elicitations.form(properties, required)), "form")
    assert isinstance(form, Form)
    return form


def test_a_field_holds_what_its_schema_says() -> None:
    """Every member of the vocabulary has its place, but for defaults, which are no answers."""
    red, green = Choice("r", "Red"), Choice("g", "Green")
    named = {"title": "Title", "description": "Description"}
    kinds = ("string, maximal", "integer, maximal", "boolean, maximal", "oneOf", "multi anyOf")
    form = _form({kind: elicitations.FIELDS[kind] for kind in kinds}, ["oneOf", "absent"])
    text = {"format": "email", "min_length": 1, "max_length": 9.5}
    assert form.message == "Please"
    assert form.also_required == ("absent",)
    assert form.fields == (
        Field(kinds[0], "string", required=False, **text, **named),
        Field(kinds[1], "number", required=False, integer=True, min=1.0, max=5, **named),
        Field(kinds[2], "boolean", required=False, **named),
        Field(kinds[3], "select", True, listed_by="oneOf", choices=(red, green), **named),
        Field(
            id=kinds[4],
            type="select",
            required=False,
            multi=True,
            listed_by="anyOf",
            choices=(red, green),
            min_items=1,
            max_items=2.0,
            **named,
        ),
    )


@pytest.mark.parametrize(
    ("names", "labels"),
    [([], "abc"), (["A"], "Abc"), (["A", "B", "C", "D"], "ABC")],
)
def test_legacy_labels_go_by_position(names: list[str], labels: str) -> None:
    """`enumNames` may be too short or too long; a choice without a name is named by its id."""
    form = _form({"p": {"type": "string", "enum": ["a", "b", "c"], "enumNames": names}})
    assert "".join(choice.label for choice in form.fields[0].choices) == labels


_PINNED = {
    "environment": {
        "type": "string",
        "enum": ["staging", "production"],
        "title": "Environment",
        "enumNames": ["Staging", "Production"],
    },
    "replicas": {"type": "integer", "title": "Replica count"},
    "reason": {"type": "string", "title": "Why now"},
    "confirm": {"type": "boolean", "title": "Proceed immediately"},
}
"""The form of the mapping that AEP 0.1 pins for Claude Code."""


def test_field_specs_are_those_that_aep_pins() -> None:
    """Ids are keys and enum values; labels are titles, or with content withheld the ids."""
    form = _form(_PINNED, ["environment", "confirm"])

    def specs(environment: str, staging: str, production: str, *others: str) -> Any:
        replicas, reason, confirm = others
        return [
            {
                "id": "environment",
                "type": "select",
                "label": environment,
                "required": True,
                "choices": [
                    {"id": "staging", "label": staging},
                    {"id": "production", "label": production},
                ],
            },
            {"id": "replicas", "type": "number", "label": replicas, "required": False},
            {"id": "reason", "type": "string", "label": reason, "required": False},
            {"id": "confirm", "type": "boolean", "label": confirm, "required": True},
        ]

    titles = ("Replica count", "Why now", "Proceed immediately")
    assert field_specs(form, labels=True) == specs("Environment", "Staging", "Production", *titles)
    keys = ("environment", "staging", "production", "replicas", "reason", "confirm")
    assert field_specs(form, labels=False) == specs(*keys)


def test_field_specs_say_multi_bounds_and_each_choice_once() -> None:
    """Beyond the pin: several choices, number bounds, and no choice twice."""
    kinds = ("multi anyOf", "number, maximal", "oneOf, repeated", "no choice")
    form = _form({kind: elicitations.FIELDS[kind] for kind in kinds})
    red, green = {"id": "r", "label": "Red"}, {"id": "g", "label": "Green"}
    multi, number, repeated, none = field_specs(form, labels=True)
    assert multi == {
        "id": kinds[0],
        "type": "select",
        "label": "Title",
        "required": False,
        "multi": True,
        "choices": [red, green],
    }
    assert (number["min"], number["max"]) == (-1, 2.5)
    assert repeated["choices"] == [red, green]
    assert none["choices"] == []


def test_field_specs_without_labels_hold_no_content() -> None:
    """No title, description, choice title, default or message is in them."""
    marked = json.loads(
        json.dumps(elicitations.FIELDS)
        .replace('"title": "', '"title": "canary ')
        .replace("Description", "canary")
        .replace('"Red"', '"canary"')
    )
    specs = json.dumps(field_specs(_form(marked), labels=False))
    assert "canary" not in specs


@pytest.mark.parametrize(
    "name",
    [
        *("password", "Password", "newPassword", "db_password", "user-password", "old.passwd"),
        *("PASSWORD", "passwords", "pwd", "passphrase", "Pass phrase", "pass_code", "passcode"),
        *("secret", "clientSecret", "CLIENT_SECRET", "aws-secret-access-key", "secrets"),
        *("token", "accessToken", "access_token", "OAuthToken", "GITHUB_TOKEN", "token2", "tokens"),
        *("apiKey", "api_key", "API key", "APIKey", "api.key", "apikey", "x-api-key", "API-KEYS"),
        *("card", "cardNumber", "card_number", "Credit card number", "creditCard", "cvv", "CVV2"),
        *("cvc", "pin", "PIN", "PIN code", "pincode", "Enter your PIN:", "otp", "pin_4"),
        *("privateKey", "private_key", "SSH key", "signing-key", "encryptionKey", "access keys"),
        *("credential", "credentials", "dbCredentials", "Your credentials?", "seed phrase"),
        *("verification code", "securityCode", "recovery_codes", "connectionString", "jwt"),
        *("Token (max 6 characters)", "one-time token, length 6"),
    ],
)
def test_a_name_of_a_credential_asks_for_one(name: str) -> None:
    """As a key or as a title, in any spelling; a number field asks for a card or a PIN as well."""
    assert asks_credential(name, None, number=False)
    assert asks_credential("value", name, number=False)
    assert asks_credential(name, None, number=True) == (name != "tokens")


@pytest.mark.parametrize(
    "name",
    [
        *("tokenizer", "tokenize", "cardinality", "discard", "Discard changes?", "secretary"),
        *("board", "dashboard", "keyboard", "cardboard", "spin", "pinned", "pinpoint", "opinion"),
        *("key", "sort_key", "primaryKey", "code", "zip_code", "countryCode", "country code"),
        *("pass", "passenger", "compass", "passage", "bypass", "passport_country", "author"),
        *("access", "string", "phrase", "connection", "account", "environment", "replicas", ""),
        *("accredited", "hotpot", "encode", "scarcity", "postcard", "secretly", "monkey"),
        *("apis", "keypad", "pinCount2x".replace("pin", "spin"), "\u043f\u0430\u0440\u0430"),
    ],
)
def test_a_name_that_only_resembles_one_does_not(name: str) -> None:
    """Words count whole; so do pairs of words that are harmless one by one."""
    assert not asks_credential(name, name, number=False)
    assert not asks_credential(name, name, number=True)


@pytest.mark.parametrize(
    "name",
    [
        *("max_tokens", "maxTokens", "token_count", "tokenCount", "tokens", "Number of tokens"),
        *("token budget", "Token limit", "prompt-tokens", "tokens used", "tokenUsage"),
    ],
)
def test_amounts_of_tokens_are_credentials_in_text_only(name: str) -> None:
    """A number field asks how many tokens; a text field with such a name is not believed."""
    assert not asks_credential(name, name, number=True)
    assert asks_credential(name, None, number=False)


def test_a_name_too_long_to_take_apart_asks_if_it_may() -> None:
    """Beyond 1,000 characters, what looks like a credential's word anywhere is enough."""
    assert not asks_credential("tokenizer " * 100, None, number=False)
    assert asks_credential("tokenizer " * 101, None, number=False)
    assert not asks_credential("aA" * 100_000, "x " * 50_000, number=False)


def test_a_form_survives_being_stored() -> None:
    """A form that is written as JSON and read again is the same, number types included."""
    form = _form(elicitations.FIELDS, ["string", "absent"])
    again = msgspec.json.decode(msgspec.json.encode(form), type=Form)
    assert again == form
    assert repr(again) == repr(form)
