"""Compiles the capture annotations of a schema into a rewriting plan.

The plan is an allow-list: a member that no schema names has no place in it and goes. What happens
to a member that is named follows from its class (`x-capture`) and from whether the schema requires
it; nothing here knows an event type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hookbus.policies.fates import (
    Below,
    Fate,
    Resolve,
    Schema,
    fate_of,
    fates_of,
    kept_texts,
    resolved,
)
from hookbus.policies.levels import Level
from hookbus.policies.parts import Cut, cut_part

PLACEHOLDER: Final = "[withheld]"
REASON: Final = "withheld"


class _Gone:
    """What a step returns for a member that has to go; `noted` says whether a gap tells of it."""

    __slots__ = ("noted",)

    def __init__(self, *, noted: bool) -> None:
        self.noted = noted


GONE: Final = _Gone(noted=True)
_GONE_SILENTLY: Final = _Gone(noted=False)

Step = Callable[[Any, str, list[str]], Any]
"""`(value, JSON Pointer of the value, pointers of the gaps so far) -> new value or GONE`."""


def compile_plan(schema: Schema, resolve: Resolve, level: Below) -> Step:
    """The step that rewrites a whole event of this schema to `level`."""
    return _Compiler(resolve, level).object(resolved(schema, resolve))


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
        return _object_with_gaps_step(steps) if schema.get("x-gaps") else _object_step(steps)

    def _array(self, schema: Schema) -> Step:
        item = resolved(schema["items"], self._resolve)
        return _array_step(self.step(fate_of(item, self._level, needed=True), item))


def own_gaps(pointers: list[str]) -> list[dict[str, str]]:
    """The gaps of an object that tells of its withheld members itself: by name."""
    return [{"path": pointer[1:], "reason": REASON} for pointer in pointers]


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


def _object_step(steps: Mapping[str, Step]) -> Step:
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


def _object_with_gaps_step(steps: Mapping[str, Step]) -> Step:
    """An object that tells of its withheld members itself, by name (AHP `mcp.connection`)."""
    inner = _object_step(steps)

    def step(value: Any, at: str, gaps: list[str]) -> Any:
        own: list[str] = []
        copy = inner(value, "", own)
        if own:
            copy["gaps"] = copy.get("gaps", []) + own_gaps(own)
        return copy

    return step


def _array_step(item: Step) -> Step:
    if item is keep:
        return keep

    def step(value: Any, at: str, gaps: list[str]) -> Any:
        return [item(member, f"{at}/{index}", gaps) for index, member in enumerate(value)]

    return step
