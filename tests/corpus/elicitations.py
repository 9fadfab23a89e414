"""MCP elicitation bodies: at least one of every kind, and values close to them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Tree = Any

_NAMED = {"title": "Title", "description": "Description"}
_TITLED = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]

FIELDS: dict[str, Tree] = {
    "string": {"type": "string"},
    "string, maximal": {
        "type": "string",
        "default": "d",
        "format": "email",
        "minLength": 1,
        "maxLength": 9.5,
        **_NAMED,
    },
    "date": {"type": "string", "format": "date"},
    "date-time": {"type": "string", "format": "date-time"},
    "uri": {"type": "string", "format": "uri"},
    "number": {"type": "number"},
    "number, maximal": {
        "type": "number",
        "default": 1.5,
        "minimum": -1,
        "maximum": 2.5,
        **_NAMED,
    },
    "integer": {"type": "integer"},
    "integer, maximal": {
        "type": "integer",
        "default": 3,
        "minimum": 1.0,
        "maximum": 5,
        **_NAMED,
    },
    "boolean": {"type": "boolean"},
    "boolean, maximal": {"type": "boolean", "default": True, **_NAMED},
    "enum": {"type": "string", "enum": ["r", "g", "r"]},
    "enum, legacy": {
        "type": "string",
        "enum": ["r", "g"],
        "enumNames": ["Red"],
        "default": "x",
        **_NAMED,
    },
    "oneOf": {"type": "string", "oneOf": _TITLED, "default": "r", **_NAMED},
    "oneOf, repeated": {"type": "string", "oneOf": [*_TITLED, {"const": "r", "title": "Rot"}]},
    "multi enum": {"type": "array", "items": {"type": "string", "enum": ["r", "g"]}},
    "multi anyOf": {
        "type": "array",
        "items": {"anyOf": _TITLED},
        "default": ["r"],
        "minItems": 1,
        "maxItems": 2.0,
        **_NAMED,
    },
    "no choice": {"type": "string", "enum": []},
    "no choices": {"type": "array", "items": {"anyOf": []}},
}
"""A property schema of every kind."""


def form(properties: Tree, required: Tree = ()) -> Tree:
    """The params of a form with these properties."""
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return {"message": "Please", "requestedSchema": schema}


def requests() -> list[Tree]:
    """Valid params of every kind."""
    shared = {"_meta": {"progressToken": 1, "x": {}}, "task": {"ttl": 60000, "x": 1}, "x": None}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    whole = form({"p": FIELDS["string"]}, ["p"])
    whole["requestedSchema"]["$schema"] = dialect
    url = {"mode": "url", "message": "Go", "url": "https://x.example/a", "elicitationId": "1"}
    return [
        {**whole, **shared, "mode": "form"},
        *(form({"p": field}) for field in FIELDS.values()),
        form({}),
        form({"a": {"type": "string"}}, ["a", "absent", "a"]),
        url,
        {**url, **shared, "requestedSchema": 1},
    ]


def results() -> list[Tree]:
    """Valid results of every kind."""
    content = {"s": "a", "n": 1, "f": 5.0, "b": True, "l": ["r", "r"], "e": []}
    return [
        {"action": "accept", "content": content, "_meta": {"x": 1}, "x": None},
        *({"action": action} for action in ("accept", "decline", "cancel")),
        {"action": "decline", "content": {}},
    ]


ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.0, 5.0, 0.5, -0.0, 1e300, 2**53, 2**64, -(2**70)),
    *("", "x", "5", "r", "Red", "a@b", "@", "\u00e9\u00e9", "\U0001f600", "2026-02-28"),
    *("2026-02-30", "02/28/2026", "2026-02-28T10:00", "2026-02-28T10:00:00", "0000-01-01"),
    *("2026-02-28T10:00:00Z", "2026-02-28t10:00:00+01:00", "example.com", "https://example.com"),
    *("urn:x", "https://x y", "20260228", "2026-W09-6", "2026-02-28 ", "\u0662026-02-28"),
    *([], {}, [None], ["r"], ["r", "r"], ["Red"], [1], [["r"]], {"a": "r"}, {"type": "string"}),
)
"""Values that belong somewhere, or nowhere."""

_WORDS = (
    *("form", "url", "accept", "decline", "cancel", "reject", "object", "string", "integer"),
    *("number", "boolean", "array", "date", "date-time", "email", "uri", "password", "null"),
)
_NAMES = (
    *("mode", "message", "url", "elicitationId", "requestedSchema", "_meta", "task", "ttl"),
    *("progressToken", "$schema", "type", "properties", "required", "title", "description"),
    *("default", "format", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"),
    *("enum", "enumNames", "oneOf", "anyOf", "items", "const", "pattern", "$ref", "x", "content"),
    *("action", "additionalProperties", "uniqueItems", "exclusiveMinimum", "$id"),
)
_PIECES = (
    *({"type": "string", "enum": ["r"]}, {"type": "string", "oneOf": [], "enum": []}),
    *({"anyOf": [{"const": "r", "title": "Red"}]}, {"oneOf": [{"const": "r", "title": "Red"}]}),
    *({"const": "r"}, {"const": 1, "title": "One"}, {"const": "r", "title": "Red", "x": 1}),
    *({"progressToken": None}, {"ttl": "1"}),
)


_REPRESENTATIVES: tuple[Any, ...] = (
    *(None, True, 1, 0.5, "", "x", [], {}, ["r"], [1], {"type": "string"}),
    *({"const": "r", "title": "Red"}, [{"const": "r", "title": "Red"}]),
)


def one_off(body: Tree) -> Iterator[Tree]:
    """Every value that is one change away: each member removed, or replaced by a value of every
    type, and each name of the vocabulary added to each member."""
    for number in range(len(list(_places({"": body})))):
        changes = [
            ("remove", None, ""),
            *(("replace", value, "") for value in _REPRESENTATIVES),
            *(("add", value, name) for name in _NAMES for value in ("r", 1)),
        ]
        for what, value, name in changes:
            yield _changed(copy.deepcopy(body), [(what, number, value, name)])


def near(bodies: list[Tree]) -> st.SearchStrategy[Tree]:
    """One of the bodies with none to three changes."""
    return st.builds(
        _changed, st.sampled_from(bodies).map(copy.deepcopy), st.lists(_changes(), max_size=3)
    )


def _changes() -> st.SearchStrategy[tuple[str, int, Any, str]]:
    values = st.one_of(st.sampled_from(pool) for pool in (ODD, _WORDS, _PIECES))
    return st.tuples(
        st.sampled_from(("remove", "replace", "add", "rename")),
        st.integers(0, 500),
        values,
        st.sampled_from(_NAMES),
    )


def _changed(body: Tree, changes: list[tuple[str, int, Any, str]]) -> Tree:
    root = {"": body}
    for what, where, value, name in changes:
        places = list(_places(root))
        holder, step = places[where % len(places)]
        _change(what, holder, step, copy.deepcopy(value), name)
        if "" not in root:
            break
    return root.get("")


def _change(what: str, holder: Tree, step: Any, value: Any, name: str) -> None:
    old = holder[step]
    match what:
        case "remove":
            del holder[step]
        case "add" if isinstance(old, dict):
            old[name] = value
        case "add" if isinstance(old, list):
            old.append(value)
        case "rename" if isinstance(holder, dict):
            holder[name] = holder.pop(step)
        case _:
            holder[step] = value


def _places(node: Tree) -> Iterator[tuple[Tree, Any]]:
    """Every member and item: the object or array that holds it, and its key or index."""
    steps = list(node) if isinstance(node, dict) else range(len(node))
    for step in steps:
        yield node, step
        if isinstance(node[step], dict | list):
            yield from _places(node[step])
