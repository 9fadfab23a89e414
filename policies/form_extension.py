"""The extension `dev.hookbus.form`: what a metadata copy of an elicitation says of its form.

    {"fields": [field_spec…], "values": {…}, "body": "conforming" | code, "result": classification}

Members that don't apply are absent. A field_spec is that of AEP-0006, with labels equal to ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from hookbus.codecs.answers import is_number
from hookbus.codecs.credentials import asks_credential
from hookbus.codecs.form import Choice, Field, FieldType, Form, field_specs
from hookbus.policies.correlation import Classification
from hookbus.policies.forms import Values, structural_values

FORM_EXTENSION: Final = "dev.hookbus.form"

CONFORMING: Final = "conforming"
NONCONFORMING: Final = ("body_json", "body_schema", "body_mismatch", "body_answer", "body_content")
BODIES: Final = (CONFORMING, *NONCONFORMING)

_TYPES: Final = frozenset(get_args(FieldType))


def form_extension(
    form: Form | None, body: str | None, values: Values | None, result: Classification | None
) -> dict[str, Any] | None:
    """The extension from what is known of the form, the answers that stay, the verdict on the body
    and the classification; None if nothing is."""
    told: dict[str, Any] = {}
    if form is not None:
        told["fields"] = field_specs(form, labels=False)
    if values is not None:
        told["values"] = values.kept
    if body is not None:
        told["body"] = body
    if result is not None:
        told["result"] = result
    return told or None


def carried_extension(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """What an event that is a copy already says of its form, as far as a metadata copy may.

    Whoever wrote it is not believed: what is not of the shape above is dropped, and a text is kept
    only where it is the id of a field or of a closed choice.
    """
    found = event.get("extensions", {}).get(FORM_EXTENSION)
    if not isinstance(found, Mapping):
        return None
    form = _carried_form(found.get("fields"))
    content = found.get("values")
    values = structural_values(form, content) if isinstance(content, Mapping) else None
    body, result = found.get("body"), found.get("result")
    return form_extension(
        form,
        body if isinstance(body, str) and body in BODIES else None,
        values,
        result if isinstance(result, str) and result in get_args(Classification) else None,  # type: ignore[arg-type]
    )


def _carried_form(specs: Any) -> Form | None:
    if not isinstance(specs, list):
        return None
    fields = [_carried_field(spec) for spec in specs]
    known = tuple(field for field in fields if field is not None)
    return Form("", known) if len(known) == len(fields) else None


def _carried_field(spec: Any) -> Field | None:
    if not isinstance(spec, Mapping):
        return None
    identity, kind = spec.get("id"), spec.get("type")
    if not isinstance(identity, str) or not isinstance(kind, str) or kind not in _TYPES:
        return None
    ids = [choice.get("id") for choice in spec.get("choices", ()) if isinstance(choice, Mapping)]
    return Field(
        identity,
        kind,  # type: ignore[arg-type]
        spec.get("required") is True,
        asks_credential=asks_credential(identity, None, number=kind == "number"),
        multi=spec.get("multi") is True,
        choices=tuple(Choice(each, each) for each in ids if isinstance(each, str)),
        min=_number(spec.get("min")),
        max=_number(spec.get("max")),
    )


def _number(value: Any) -> int | float | None:
    return value if is_number(value) else None
