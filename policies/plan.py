"""Compiles the capture annotations of a schema into a rewriting plan.

The plan is an allow-list: a member that no schema names has no place in it and goes. What happens
to a member that is named follows from its class (`x-capture`) and from whether the schema requires
it; nothing here knows an event type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from hookbus.policies.levels import Level
from hookbus.policies.parts import Cut, cut_part

Schema = Mapping[str, Any]
Resolve = Callable[[str], Schema]
"""Finds the schema that a `$ref` points to; a resolved schema's own refs resolve the same way."""

PLACEHOLDER: Final = "[withheld]"
REASON: Final = "withheld"

Below = Literal["none", "metadata"]


class _Gone:
    """What a step returns for a member that has to go; `noted` says whether a gap tells of it."""

    __slots__ = ("noted",)

    def __init__(self, *, noted: bool) -> None:
        self.noted = noted


GONE: Final = _Gone(noted=True)
_GONE_SILENTLY: Final = _Gone(noted=False)

Step = Callable[[Any, str, list[str]], Any]
"""`(value, JSON Pointer of the value, pointers of the gaps so far) -> new value or GONE`."""


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


def compile_plan(schema: Schema, resolve: Resolve, level: Below) -> Step:
    """The step that rewrites a whole event of this schema to `level`."""
    return _Compiler(resolve, level).object(resolved(schema, resolve))


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


class _Compiler:
    def __init__(self, resolve: Resolve, level: Below) -> None:
        self._resolve = resolve
        self._level: Below = level

    def step(self, fate: Fate, schema: Schema) -> Step:
        match fate:
            case "keep":
                return keep
            case "go":
                return _go
            case "go silently":
                return _go_silently
            case "empty":
                return _empty
            case "placeholder":
                return _placeholder(kept_texts(schema))
            case "part":
                return _part(self._level)
            case "object":
                return self.object(schema)
            case "items":
                return self._array(schema)
            case "no items":
                return _no_items

    def object(self, schema: Schema) -> Step:
        fates = fates_of(schema, self._resolve, self._level)
        steps = {name: self.step(*fate) for name, fate in fates.items()}
        return object_with_gaps_step(steps) if schema.get("x-gaps") else object_step(steps)

    def _array(self, schema: Schema) -> Step:
        item = resolved(schema["items"], self._resolve)
        return array_step(self.step(fate_of(item, self._level, needed=True), item))


def keep(value: Any, at: str, gaps: list[str]) -> Any:
    return value


def _go(value: Any, at: str, gaps: list[str]) -> Any:
    return GONE


def _go_silently(value: Any, at: str, gaps: list[str]) -> Any:
    return _GONE_SILENTLY


def _no_items(value: Any, at: str, gaps: list[str]) -> Any:
    return []


def _empty(value: Any, at: str, gaps: list[str]) -> Any:
    """Required opaque JSON becomes empty, and a gap says so where something was withheld."""
    if value:
        gaps.append(at)
    return [] if isinstance(value, list) else {}


def _placeholder(kept: frozenset[str]) -> Step:
    def step(value: Any, at: str, gaps: list[str]) -> Any:
        if isinstance(value, list):  # a list of paths: its members must stay unique
            return [PLACEHOLDER] if value else value
        return value if value in kept else PLACEHOLDER

    return step


def _part(level: Level) -> Step:
    cut = Cut("omit" if level == "none" else "metadata")

    def step(value: Any, at: str, gaps: list[str]) -> Any:
        return cut_part(value, cut)

    return step


def object_step(steps: Mapping[str, Step]) -> Step:
    def step(value: Any, at: str, gaps: list[str]) -> Any:
        copy: dict[str, Any] = {}
        for name, member in value.items():
            rewrite = steps.get(name)
            if rewrite is None:
                continue
            if rewrite is keep:
                copy[name] = member
                continue
            there = f"{at}/{name}"
            kept = rewrite(member, there, gaps)
            if not isinstance(kept, _Gone):
                copy[name] = kept
            elif kept.noted:
                gaps.append(there)
        return copy

    return step


def object_with_gaps_step(steps: Mapping[str, Step]) -> Step:
    """An object that tells of its withheld members itself, by name (AHP `mcp.connection`)."""
    inner = object_step(steps)

    def step(value: Any, at: str, gaps: list[str]) -> Any:
        own: list[str] = []
        copy = inner(value, "", own)
        withheld = [{"path": pointer[1:], "reason": REASON} for pointer in own]
        if withheld:
            copy["gaps"] = copy.get("gaps", []) + withheld
        return copy

    return step


def array_step(item: Step) -> Step:
    if item is keep:
        return keep

    def step(value: Any, at: str, gaps: list[str]) -> Any:
        return [item(member, f"{at}/{index}", gaps) for index, member in enumerate(value)]

    return step
