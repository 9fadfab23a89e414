"""msgspec types of the form params of an elicitation, and of a result: the fast way to accept one.

What converts, the schema (`schemas/mcp/elicitation.json`) accepts; the tests prove it. The
converse need not hold: a refusal means only that the schema has to decide.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from hookbus.codecs.form import Field, Form, read_fields

_LONGEST_REMEMBERED: Final = 8192
"""Far below what it takes to break a cap on counts (`hookbus.codecs.elicitation`)."""
_Text = str | UnsetType
_Texts = list[str] | UnsetType
_Number = int | float
_Bound = int | float | UnsetType


class _Choice(Struct, forbid_unknown_fields=True, gc=False):
    const: str
    title: str


class _Field(Struct, tag_field="type", forbid_unknown_fields=True, gc=False):
    title: _Text = UNSET
    description: _Text = UNSET


class _String(_Field, tag="string"):
    default: _Text = UNSET
    format: Literal["date", "date-time", "email", "uri"] | UnsetType = UNSET
    min_length: _Bound = field(default=UNSET, name="minLength")
    max_length: _Bound = field(default=UNSET, name="maxLength")
    enum: _Texts = UNSET
    enum_names: _Texts = field(default=UNSET, name="enumNames")
    one_of: list[_Choice] | UnsetType = field(default=UNSET, name="oneOf")

    def __post_init__(self) -> None:
        plain = self.enum is UNSET and self.one_of is UNSET
        if plain and self.enum_names is UNSET:
            return
        text = (self.format, self.min_length, self.max_length)
        listed = (self.enum, self.enum_names) if self.enum is UNSET else (self.one_of,)
        if plain or any(member is not UNSET for member in (*text, *listed)):
            raise ValueError("members of several kinds of field")


class _AnyNumber(_Field):
    default: _Bound = UNSET
    minimum: _Bound = UNSET
    maximum: _Bound = UNSET


class _FloatingNumber(_AnyNumber, tag="number"):
    pass


class _Integer(_AnyNumber, tag="integer"):
    pass


class _Boolean(_Field, tag="boolean"):
    default: bool | UnsetType = UNSET


class _Items(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["string"] | UnsetType = UNSET
    enum: _Texts = UNSET
    any_of: list[_Choice] | UnsetType = field(default=UNSET, name="anyOf")

    def __post_init__(self) -> None:
        untitled = (self.type is not UNSET, self.enum is not UNSET)
        if untitled != (self.any_of is UNSET,) * 2:
            raise ValueError("neither titled nor untitled items")


class _Array(_Field, tag="array", kw_only=True):
    items: _Items
    default: _Texts = UNSET
    min_items: _Bound = field(default=UNSET, name="minItems")
    max_items: _Bound = field(default=UNSET, name="maxItems")


class _Schema(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["object"]
    properties: dict[str, _String | _FloatingNumber | _Integer | _Boolean | _Array]
    required: _Texts = UNSET
    dialect: _Text = field(default=UNSET, name="$schema")


class _Meta(Struct, gc=False):
    progress_token: str | _Number | UnsetType = field(default=UNSET, name="progressToken")


class _Task(Struct, gc=False):
    ttl: _Bound = UNSET


class _FormParams(Struct, gc=False):
    message: str
    requested_schema: _Schema = field(name="requestedSchema")
    mode: Literal["form"] | UnsetType = UNSET
    meta: _Meta | UnsetType = field(default=UNSET, name="_meta")
    task: _Task | UnsetType = UNSET


class _Around(Struct, gc=False):
    """The params of a form whose schema is looked at by itself."""

    message: str
    requested_schema: dict[str, Any] = field(name="requestedSchema")
    mode: Literal["form"] | UnsetType = UNSET
    meta: _Meta | UnsetType = field(default=UNSET, name="_meta")
    task: _Task | UnsetType = UNSET


class _Result(Struct, gc=False):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | _Number | bool | list[str]] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(default=UNSET, name="_meta")


def are_form_params(body: Any) -> bool:
    """Whether a body is certainly the params of a form; False leaves it open."""
    return _converts(body, _FormParams)


def known_form(body: Any) -> Form | None:
    """The form in a body that certainly is the params of one; None leaves it open.

    Servers ask the same forms again, with other messages: what follows from a schema of ordinary
    length is remembered.
    """
    if not _converts(body, _Around):
        return None
    schema = msgspec.json.encode(body["requestedSchema"])
    fields = _fields(schema) if len(schema) <= _LONGEST_REMEMBERED else None
    return None if fields is None else Form(body["message"], *fields)


@lru_cache(512)
def _fields(schema: bytes) -> tuple[tuple[Field, ...], tuple[str, ...]] | None:
    """The fields of a form, and the keys that are required besides."""
    tree = msgspec.json.decode(schema)
    return read_fields(tree) if _converts(tree, _Schema) else None


def is_result(body: Any) -> bool:
    """Whether a body is certainly a result; False leaves it open."""
    return _converts(body, _Result)


def _converts(body: Any, kind: type[Struct]) -> bool:
    try:
        msgspec.convert(body, kind)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True
