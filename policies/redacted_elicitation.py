"""The bodies of elicitations in redacted copies.

A body is parsed, redacted member by member and serialized again: the shape that MCP gives it stays,
and so do ids, closed choices and bounds. Members that the vocabulary doesn't name go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from hookbus.codecs.answers import check_answers
from hookbus.codecs.elicitation import MAX_BYTES
from hookbus.codecs.form import Field, Form
from hookbus.codecs.formats import is_uri
from hookbus.codecs.strict import Limits, encode, parse
from hookbus.codecs.verdict import Refusal
from hookbus.policies.forms import structural_values
from hookbus.policies.plan import PLACEHOLDER
from hookbus.policies.redacted_plan import origin
from hookbus.policies.redaction.contract import Redacts
from hookbus.policies.redaction.spans import SECRET

_LIMITS: Final = Limits(max_bytes=MAX_BYTES)
_NOWHERE: Final = "about:withheld"
_TEXTS: Final = ("title", "description")


def redacted_body(
    kind: Literal["request", "result"], text: str, form: Form | None, redactor: Redacts
) -> str:
    """The redacted body of a conforming elicitation, as JSON text that the official checks accept.

    `form` is the one that a request asks, or that a result answers; None for a URL, or for a result
    without its request. Raises ValueError if the body doesn't parse.
    """
    body = parse(text.encode(), _LIMITS)
    if isinstance(body, Refusal) or not isinstance(body, dict):
        raise ValueError("a body that was judged conforming does not parse")
    made = _request(body, form, redactor) if kind == "request" else _result(body, form, redactor)
    return encode(made).decode()


def _request(body: Mapping[str, Any], form: Form | None, redactor: Redacts) -> dict[str, Any]:
    made = {name: body[name] for name in ("mode", "elicitationId") if name in body}
    made["message"] = redactor.text(body["message"])
    if form is None:
        made["url"] = _place(body["url"], redactor)
        return made
    made.pop("elicitationId", None)
    asked = body["requestedSchema"]
    fields = {field.id: field for field in form.fields}
    schema: dict[str, Any] = {"type": asked["type"]}
    schema["properties"] = {
        key: _asked(fields[key], member, redactor) for key, member in asked["properties"].items()
    }
    if "required" in asked:
        schema["required"] = asked["required"]
    made["requestedSchema"] = schema
    return made


def _place(url: str, redactor: Redacts) -> str:
    """Of a URL its origin, if that is a URL and hides nothing."""
    shown = origin(url)
    safe = shown is not None and is_uri(shown) and redactor.text(shown) == shown
    return shown if safe and shown is not None else _NOWHERE


def _asked(field: Field, member: Mapping[str, Any], redactor: Redacts) -> dict[str, Any]:
    """One field of a form, with what a person reads in it redacted."""
    made = dict(member)
    for name in _TEXTS:
        if name in made:
            made[name] = redactor.text(made[name])
    if "enumNames" in made:
        made["enumNames"] = [redactor.text(label) for label in made["enumNames"]]
    if "oneOf" in made:
        made["oneOf"] = _titled(made["oneOf"], redactor)
    if "anyOf" in made.get("items", {}):
        made["items"] = {**made["items"], "anyOf": _titled(made["items"]["anyOf"], redactor)}
    if "default" in made:
        preset = None if field.asks_credential else _preset(field, made.pop("default"), redactor)
        made.pop("default", None)
        if preset is not None:
            made["default"] = preset
    return made


def _titled(choices: list[dict[str, Any]], redactor: Redacts) -> list[dict[str, Any]]:
    return [{**choice, "title": redactor.text(choice["title"])} for choice in choices]


def _preset(field: Field, default: Any, redactor: Redacts) -> Any:
    """A default, None if it can't stay. One of closed choices is an id, if the form has it."""
    if isinstance(default, bool):
        return default
    if isinstance(default, str):
        known = any(choice.id == default for choice in field.choices)
        return default if known else redactor.text(default)
    if isinstance(default, list):
        ids = {choice.id for choice in field.choices}
        return [one if one in ids else redactor.text(one) for one in default]
    return None if redactor.number_is_secret(default) else default


def _result(body: Mapping[str, Any], form: Form | None, redactor: Redacts) -> dict[str, Any]:
    made: dict[str, Any] = {"action": body["action"]}
    content = body.get("content")
    if content is None:
        return made
    if form is None:
        made["content"] = _orphaned(content, redactor)
    else:
        answered = [field for field in form.fields if field.id in content]
        answers = {field.id: _answer(field, content[field.id], redactor) for field in answered}
        kept = {key: value for key, value in answers.items() if value is not None}
        made["content"] = {key: kept[key] for key in content if key in kept}
    return made


def _orphaned(content: Mapping[str, Any], redactor: Redacts) -> dict[str, Any]:
    """Nothing says what was asked: texts are withheld, and only booleans and numbers stay."""
    kept = structural_values(None, content).kept
    made: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, str):
            made[key] = PLACEHOLDER
        elif isinstance(value, list):
            made[key] = [PLACEHOLDER for _ in value]
        elif key in kept and (isinstance(value, bool) or not redactor.number_is_secret(value)):
            made[key] = value
    return made


def _answer(field: Field, value: Any, redactor: Redacts) -> Any:
    """The answer as it may stay, None if it can't. A redacted text that its field would not take
    goes, unless the form requires an answer."""
    if field.type == "string":
        made = SECRET if field.asks_credential else redactor.text(value)
        if made == value or field.required or _takes(field, made):
            return made
        return None
    if field.asks_credential:
        return None
    if field.type == "number" and redactor.number_is_secret(value):
        return None
    return value


def _takes(field: Field, value: str) -> bool:
    return check_answers(Form("", (field,)), {field.id: value}) is None
