"""Types derived from schemas: what they express, and that they refuse what they can't."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hookbus.codecs.compiled import Compiled
from hookbus.codecs.formats import is_date_time, is_uri
from hookbus.codecs.typed import Types
from hookbus.codecs.verdict import Refusal

_FORMATS = {"uri": is_uri, "date-time": is_date_time}
_TEXT = {"type": "string"}
_VALUES: tuple[Any, ...] = (
    *({}, {"a": 1}, {"a": -1}, {"a": 1.0}, {"a": 1.5}, {"a": True}, {"a": None}, {"a": ""}),
    *({"a": "x"}, {"a": "y"}, {"a": "x\n"}, {"a": "urn:x"}, {"b": 1}, {"a": "x", "b": "x"}),
    *({"a": []}, {"a": ["x"]}, {"a": ["x", "x"]}, {"a": ["x", "y"]}, {"a": [1]}, {"a": {}}),
    *({"a": {"b": "x"}}, {"a": {"b": 1}}, {"a": {"b": "x", "c": "x"}}, {"a": {"c": "x"}}, [], 1),
    *({"a": "x", "class": "x"}, {"class": "x"}, {"x.y": 1}, {"a": {"x.y": 1}}, {"a": {"x.y\n": 1}}),
)
_OBJECT = {"type": "object", "properties": {"b": _TEXT, "c": _TEXT}}


def _of(schema: dict[str, Any]) -> Types:
    return Types({"definitions": {"x": schema}}, _FORMATS)


@pytest.mark.parametrize(
    ("schema", "left_to_the_schema"),
    [
        ({"properties": {"a": {"type": "integer", "minimum": 0}}}, [{"a": 1.0}]),
        ({"properties": {"a": {"type": "number"}}, "required": ["a"]}, []),
        ({"properties": {"a": {"enum": ["x", "y"]}}, "additionalProperties": False}, []),
        ({"properties": {"a": {"const": "x"}, "class": {"const": "x"}}, "required": ["class"]}, []),
        ({"properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]}, []),
        ({"properties": {"a": {"type": "string", "format": "uri"}}, "required": ["a"]}, []),
        ({"properties": {"a": {"type": "string", "pattern": "^x$"}}, "required": ["a"]}, []),
        ({"properties": {"a": {"type": ["null", "string"]}}, "required": ["a"]}, []),
        ({"properties": {"a": {"type": "array", "items": _TEXT}}, "required": ["a"]}, []),
        (
            {
                "properties": {"a": {"type": "array", "items": _TEXT, "uniqueItems": True}},
                "required": ["a"],
            },
            [],
        ),
        (
            {
                "properties": {
                    "a": {
                        "type": "array",
                        "items": _TEXT,
                        "minItems": 1,
                        "contains": {"const": "y"},
                    }
                }
            },
            [],
        ),
        ({"properties": {"a": _OBJECT}, "required": ["a"]}, []),
        (
            {"properties": {"a": {**_OBJECT, "minProperties": 1}}, "required": ["a"]},
            [{"a": {"x.y": 1}}, {"a": {"x.y\n": 1}}],
        ),
        ({"properties": {"a": {**_OBJECT, "required": ["b"]}}, "required": ["a"]}, []),
        ({"properties": {"a": {"type": "object", "additionalProperties": _TEXT}}}, []),
        ({"properties": {"b": False}, "required": ["a"]}, []),
        ({"properties": {"a": _TEXT, "b": _TEXT}, "anyOf": [{"required": ["b"]}]}, []),
        (
            {
                "properties": {"a": _TEXT, "b": _TEXT},
                "if": {"properties": {"a": {"const": "x"}}, "required": ["a"]},
                "then": {"required": ["b"]},
                "else": {"properties": {"b": False}},
            },
            [],
        ),
        (
            {
                "properties": {
                    "a": {
                        "type": "object",
                        "propertyNames": {"pattern": "^[a-z.]+$"},
                    }
                },
                "required": ["a"],
            },
            [],
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": _TEXT}},
                    {"properties": {"a": {"not": {"const": "x"}}}},
                ]
            },
            [],
        ),
    ],
)
def test_a_type_accepts_only_what_the_compiled_schema_accepts(
    schema: dict[str, Any], left_to_the_schema: list[Any]
) -> None:
    """Each kind of constraint that our schemas use holds in the derived type, which leaves only
    few values to the compiled schema."""
    schema = {"type": "object", **schema}
    compiled = Compiled({"definitions": {"x": schema}}, _FORMATS)
    right = [value for value in _VALUES if compiled.check("x", value) is None]
    decoder = msgspec.json.Decoder(_of(schema).of(schema))
    taken = [value for value in _VALUES if _decodes(decoder, value)]
    assert 0 < len(taken) < len(_VALUES)
    # by spelling: 1 and 1.0 are equal
    left = [value for value in right if repr(value) not in [*map(repr, taken)]]
    assert left == left_to_the_schema
    assert [value for value in taken if compiled.check("x", value)] == []


def _decodes(decoder: Any, value: Any) -> bool:
    try:
        decoder.decode(msgspec.json.encode(value))
    except msgspec.DecodeError:
        return False
    return True


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "maxLength": 3},
        {"type": "object", "properties": {"a": {"type": "object", "patternProperties": {}}}},
        {"type": "object", "properties": {"a": _TEXT}, "allOf": [{"if": {"maxLength": 3}}]},
        {"type": "object", "properties": {"a": _TEXT}, "not": {"minProperties": 1}},
        {"type": "array", "items": {"type": "string", "format": "uri"}},
        {"type": "object", "properties": {"a": _TEXT}, "additionalProperties": {"type": "integer"}},
        {
            "allOf": [
                {"type": "object", "properties": {"a": _TEXT}, "additionalProperties": False},
                {"properties": {"b": _TEXT}},
            ]
        },
    ],
)
def test_what_a_type_cannot_express_is_refused_at_once(schema: dict[str, Any]) -> None:
    """A keyword that would go unchecked is an error at construction, never a silent yes."""
    with pytest.raises(TypeError):
        _of(schema).of(schema)


def test_a_pointer_ends_before_unnamed_members() -> None:
    """Whatever the names of unnamed members look like, none of them is in a pointer."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}},
    }
    compiled = Compiled({"definitions": {"x": schema}}, _FORMATS)
    for name in ("secret", "a", "0", "a.a", "a[0]", "{a}", "%s", "/", "~", ""):
        assert compiled.check("x", {"a": {name: "text"}}) == Refusal("schema", "/a", "type")
