"""The form that an MCP elicitation asks to be filled in, and its fields as AEP-0006 has them. Forms
of AEP are read by `hookbus.codecs.aep_attention`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from hookbus.codecs.credentials import asks_credential

FieldType = Literal["string", "number", "boolean", "select"]
Format = Literal["date", "date-time", "email", "uri"]
Number = int | float


class Choice(Struct, frozen=True):
    """One choice of a select: the enum value, and what a person reads (the id if there is no
    title)."""

    id: str
    label: str


class Field(Struct, frozen=True, omit_defaults=True):
    """One field. `id` is the property key. All bounds are inclusive and as the schema wrote them,
    which allows fractions; lengths are in code points."""

    id: str
    type: FieldType
    required: bool
    title: str | None = None
    description: str | None = None
    asks_credential: bool = False
    integer: bool = False
    """A number field that takes integers only; `5.0` is one."""
    multi: bool = False
    """A select of which any number of choices may be chosen."""
    other: bool = False
    """A select that takes free text beside its choices (AEP only)."""
    listed_by: Literal["enum", "oneOf", "anyOf"] | None = None
    """The keyword that lists the choices. With `oneOf` an answer has to equal exactly one choice,
    so that none satisfies a choice listed twice."""
    choices: tuple[Choice, ...] = ()
    """In order, repeated ones too."""
    format: Format | None = None
    min: Number | None = None
    max: Number | None = None
    min_length: Number | None = None
    max_length: Number | None = None
    min_items: Number | None = None
    max_items: Number | None = None


class Form(Struct, frozen=True):
    """A form: what it says to the person, and its fields in order."""

    message: str
    fields: tuple[Field, ...]
    also_required: tuple[str, ...] = ()
    """Required keys that are no field's; an answer has to hold them, with any value."""


def read_form(params: Mapping[str, Any]) -> Form:
    """The form in the params of a request that `schemas/mcp/elicitation.json` accepts."""
    return Form(params["message"], *read_fields(params["requestedSchema"]))


def read_fields(schema: Mapping[str, Any]) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """The fields in a valid `requestedSchema`, and the keys that it requires besides."""
    properties = schema["properties"]
    required = dict.fromkeys(schema.get("required", ()))
    return (
        tuple(_field(key, member, key in required) for key, member in properties.items()),
        tuple(key for key in required if key not in properties),
    )


def _field(key: str, schema: Mapping[str, Any], required: bool) -> Field:
    kind = schema["type"]
    title = schema.get("title")
    number = kind in ("number", "integer")
    listed_by, choices = _choices(schema)
    return Field(
        id=key,
        type="select" if listed_by else "number" if number else kind,
        required=required,
        title=title,
        description=schema.get("description"),
        asks_credential=asks_credential(key, title, number=number),
        integer=kind == "integer",
        multi=kind == "array",
        listed_by=listed_by,
        choices=choices,
        format=schema.get("format"),
        min=schema.get("minimum"),
        max=schema.get("maximum"),
        min_length=schema.get("minLength"),
        max_length=schema.get("maxLength"),
        min_items=schema.get("minItems"),
        max_items=schema.get("maxItems"),
    )


def _choices(
    schema: Mapping[str, Any],
) -> tuple[Literal["enum", "oneOf", "anyOf"] | None, tuple[Choice, ...]]:
    items = schema.get("items", schema)
    if "enum" in items:
        ids = items["enum"]
        labels = schema.get("enumNames", ())
        labels = [*labels[: len(ids)], *ids[len(labels) :]]
        return "enum", tuple(map(Choice, ids, labels))
    for keyword in ("oneOf", "anyOf"):
        if keyword in items:
            titled = items[keyword]
            return keyword, tuple(Choice(each["const"], each["title"]) for each in titled)
    return None, ()


def field_specs(form: Form, *, labels: bool) -> list[dict[str, Any]]:
    """The fields as AEP-0006 field_specs: `id`, `type`, `label`, `required`, and where they apply
    `multi`, `choices` (each id once), `min` and `max`. Ids are the property keys and enum values
    (mapping pinned by AEP for Claude Code). Without `labels`, a label is the id: titles are
    content, ids are structure. `other` is never there: choices of MCP are closed.
    """
    return [_spec(field, labels) for field in form.fields]


def _spec(field: Field, labels: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "id": field.id,
        "type": field.type,
        "label": field.title if labels and field.title is not None else field.id,
        "required": field.required,
    }
    if field.multi:
        spec["multi"] = True
    if field.type == "select":
        once: dict[str, str] = {}
        for choice in field.choices:
            once.setdefault(choice.id, choice.label if labels else choice.id)
        spec["choices"] = [{"id": key, "label": label} for key, label in once.items()]
    if field.min is not None:
        spec["min"] = field.min
    if field.max is not None:
        spec["max"] = field.max
    return spec
