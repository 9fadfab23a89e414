"""Which answers to a form stay in a copy at `metadata`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hookbus.codecs.answers import is_integral, is_number
from hookbus.codecs.credentials import asks_credential
from hookbus.codecs.form import Field, Form


class Values(Struct, frozen=True):
    """The answers that stay, by property key, and how many went because they answer a field that
    asks for a credential."""

    kept: dict[str, Any]
    credentials: int


def structural_values(form: Form | None, content: Mapping[str, Any] | None) -> Values:
    """The answers in `content` that are structure, not content; pass None for content that nobody
    agreed to share.

    With the form: booleans, numbers and ids of closed choices, each where the form has a field of
    that type; the other keys go. A list of chosen ids stays whole or not at all. Without it (an
    orphan result): booleans and numbers, since only they can't be free text. Answers to a field
    that asks for a credential never stay; without the form its key alone tells.
    """
    answers = content or {}
    if form is None:
        asking = {key for key, value in answers.items() if _looks_asking(key, value)}
        kept = {key: value for key, value in answers.items() if isinstance(value, int | float)}
    else:
        fields = {field.id: field for field in form.fields if field.id in answers}
        asking = {key for key, field in fields.items() if field.asks_credential}
        kept = {key: answers[key] for key, field in fields.items() if _fits(field, answers[key])}
    kept = {key: value for key, value in kept.items() if key not in asking}
    return Values(kept, len(asking))


def _looks_asking(key: str, value: Any) -> bool:
    return asks_credential(key, None, number=is_number(value))


def _fits(field: Field, value: Any) -> bool:
    """Whether a value is structure of the field's own type. Bounds don't matter."""
    match field.type:
        case "boolean":
            return isinstance(value, bool)
        case "number":
            return is_number(value) and (not field.integer or is_integral(value))
        case "select":
            chosen = value if field.multi else [value]
            return isinstance(chosen, list) and _all_listed(field, chosen)
        case "string":
            return False


def _all_listed(field: Field, chosen: list[Any]) -> bool:
    ids = {choice.id for choice in field.choices}
    return all(isinstance(value, str) and value in ids for value in chosen)
