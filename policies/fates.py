"""What the capture annotations of a schema (`x-capture`) say of each member below `full`.

It follows from the member's class and from whether the schema requires it; nothing here knows an
event type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

Schema = Mapping[str, Any]
Resolve = Callable[[str], Schema]
"""Finds the schema that a `$ref` points to; a resolved schema's own refs resolve the same way."""

Below = Literal["none", "metadata"]


Fate = Literal[
    "keep", "go", "go silently", "empty", "placeholder", "part", "object", "items", "no items"
]
"""What becomes of a member below `full`: it stays; goes, with or without a gap; becomes empty JSON
or a placeholder; is cut as a content part; is rewritten member by member or item by item; or is
left without items."""


class Member(Struct, frozen=True):
    """One named member of an object, over all branches of its schema."""

    schema: Schema
    required: bool
    sometimes: bool
    """Required by some branch, such as `error` when the outcome is `error`."""


def members_of(schema: Schema, resolve: Resolve) -> dict[str, Member]:
    """The named members of an object schema, gathered from every branch that may apply."""
    named: dict[str, Schema] = {}
    always: set[str] = set()
    sometimes: set[str] = set()
    for branch, conditional in _branches(schema, resolve, conditional=False):
        (sometimes if conditional else always).update(branch.get("required", ()))
        for name, member in branch.get("properties", {}).items():
            classed = isinstance(member, dict) and "x-capture" in resolved(member, resolve)
            if classed and name not in named:  # else it only narrows, or bans, what is named
                named[name] = member
    if schema.get("minProperties"):
        always.update(named)
    return {
        name: Member(member, name in always, name in sometimes) for name, member in named.items()
    }


def _branches(
    schema: Schema, resolve: Resolve, *, conditional: bool
) -> Iterator[tuple[Schema, bool]]:
    schema = resolved(schema, resolve)
    yield schema, conditional
    for branch in schema.get("allOf", ()):
        yield from _branches(branch, resolve, conditional=conditional)
    for keyword in ("then", "else"):
        if keyword in schema:
            yield from _branches(schema[keyword], resolve, conditional=True)
    for keyword in ("anyOf", "oneOf"):
        for branch in schema.get(keyword, ()):
            yield from _branches(branch, resolve, conditional=True)


def resolved(schema: Schema, resolve: Resolve) -> Schema:
    """The schema behind a reference; an annotation beside the reference wins."""
    while "$ref" in schema:
        annotation = schema.get("x-capture")
        schema = resolve(schema["$ref"])
        if annotation is not None:
            schema = {**schema, "x-capture": annotation}
    return schema


def fate_of(schema: Schema, level: Below, *, needed: bool) -> Fate:
    """The fate of a member with this (resolved) schema; `needed` if some branch requires it."""
    if level == "none" and not needed:
        return "go silently"
    match schema.get("x-capture"):
        case "structural" if "properties" in schema or "allOf" in schema:
            return "object"
        case "structural" if "items" in schema:
            return "no items" if level == "none" and not schema.get("minItems") else "items"
        case "structural" if schema.get("type") in ("object", "array"):
            raise ValueError("a structural object or array must say what it holds")
        case "structural" | "token":
            return "keep"
        case "part":
            return "part"
        case "opaque":
            return "empty" if needed else "go"
        case "text" | "identity" | "path":
            return "placeholder" if needed else "go"
        case unknown:
            raise ValueError(f"unknown capture class {unknown!r}")


def fates_of(schema: Schema, resolve: Resolve, level: Below) -> dict[str, tuple[Fate, Schema]]:
    """The fate of each named member of an object, with its resolved schema. An object that has gaps
    of its own (`x-gaps`) need not keep its paths: it tells of them itself."""
    fates: dict[str, tuple[Fate, Schema]] = {}
    for name, member in members_of(schema, resolve).items():
        inner = resolved(member.schema, resolve)
        fate = fate_of(inner, level, needed=member.required or member.sometimes)
        if schema.get("x-gaps"):
            if inner.get("x-capture") == "path":
                fate = "go"
            elif name == "gaps":
                fate = fate_of(inner, level, needed=True)
        fates[name] = fate, inner
    return fates


def kept_texts(schema: Schema) -> frozenset[str]:
    """The texts that a placeholder never takes the place of."""
    return frozenset(schema.get("x-capture-keep", ()))
