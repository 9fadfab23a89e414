"""Whether answers satisfy a form: a small interpreter for the closed vocabulary of MCP forms.

It says what a JSON Schema 2020-12 validator with format checks says of the answers under the
original `requestedSchema`. `5.0` is an integer; nothing is converted, and no default is filled in.
Formats have the deviations of `hookbus.codecs.formats`; an `email` is what has an `@`, as in the
official validator. Nothing is compiled, and the time is linear in the form and the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hookbus.codecs.elicitation import BodyFault
from hookbus.codecs.form import Field, Form, Format
from hookbus.codecs.formats import is_date_time, is_uri


def check_answers(form: Form, content: Mapping[str, Any] | None) -> BodyFault | None:
    """The first fault (`body_answer`) of the answers to an accepted form, in the order of its
    fields; None if they satisfy it. No content counts as no answers; other keys pass.

    For a missing answer the path is `/content` and the rule `required`.
    """
    answers = content or {}
    for field in form.fields:
        if field.id in answers:
            rule = _broken(field, answers[field.id])
            if rule is not None:
                return BodyFault("body_answer", f"/content/{_escaped(field.id)}", rule)
        elif field.required:
            return _MISSING
    if any(key not in answers for key in form.also_required):
        return _MISSING
    return None


_MISSING: Final = BodyFault("body_answer", "/content", "required")


def _escaped(key: str) -> str:
    """A key as a step of a JSON Pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _broken(field: Field, value: Any) -> str | None:
    """The schema keyword that an answer breaks."""
    match field.type:
        case "boolean":
            return None if isinstance(value, bool) else "type"
        case "number":
            return _broken_by_number(field, value)
        case "string":
            return _broken_by_text(field, value)
        case "select":
            return _broken_by_many(field, value) if field.multi else _broken_by_one(field, value)


def _broken_by_number(field: Field, value: Any) -> str | None:
    if not is_number(value) or (field.integer and not is_integral(value)):
        return "type"
    if field.min is not None and value < field.min:
        return "minimum"
    if field.max is not None and value > field.max:
        return "maximum"
    return None


def _broken_by_text(field: Field, value: Any) -> str | None:
    if not isinstance(value, str):
        return "type"
    if field.min_length is not None and len(value) < field.min_length:
        return "minLength"
    if field.max_length is not None and len(value) > field.max_length:
        return "maxLength"
    if field.format is not None and not _FORMATS[field.format](value):
        return "format"
    return None


def _broken_by_one(field: Field, value: Any) -> str | None:
    if not isinstance(value, str):
        return "type"
    if field.other:
        return None
    times = sum(choice.id == value for choice in field.choices)
    return None if times == 1 or (times and field.listed_by == "enum") else field.listed_by


def _broken_by_many(field: Field, value: Any) -> str | None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return "type"
    if field.min_items is not None and len(value) < field.min_items:
        return "minItems"
    if field.max_items is not None and len(value) > field.max_items:
        return "maxItems"
    if field.other or {choice.id for choice in field.choices}.issuperset(value):
        return None
    return field.listed_by


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integral(value: int | float) -> bool:
    """Whether a number is an integer, `5.0` included."""
    return isinstance(value, int) or value.is_integer()


def _is_date(text: str) -> bool:
    return is_date_time(f"{text}T00:00:00Z")


def _is_email(text: str) -> bool:
    return "@" in text


_FORMATS: Final[Mapping[Format, Callable[[str], bool]]] = {
    "date": _is_date,
    "date-time": is_date_time,
    "email": _is_email,
    "uri": is_uri,
}
