"""Compiles the levels in the AEP schemas into cuts of an event's data (AEP-0001 §8.2).

A declared member needs the level that its schema names. What no schema names counts as `metadata`
(AEP-0002 §5.1), so it stays, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from hookbus.policies.fates import Resolve, Schema, resolved
from hookbus.policies.forms import Values
from hookbus.policies.levels import LEVELS

Kept = Literal["metadata", "redacted"]
"""The levels that a cut can keep: at `full` all stays, at `none` nothing."""


class Scene(Struct):
    """What a cut needs to know besides the data, and what it found. One for each cut."""

    agent: str
    subject: str | None
    values: Callable[[Mapping[str, Any]], Values]
    """Which values of a form stay."""
    above: int = 0
    """How many members went for anything but asking for a credential."""


class _Gone:
    __slots__ = ()


_GONE: Final = _Gone()

Cut = Callable[[Any, Any, Scene], Any]
"""`(value, the object around it, scene) -> new value`; the value itself where nothing changes, so
that an unchanged event can be told from a changed one."""


def keep(value: Any, around: Any, scene: Scene) -> Any:
    """The cut that changes nothing."""
    return value


def compile_cut(schema: Schema, resolve: Resolve, level: Kept, *, degrade: bool) -> Cut:
    """The cut of data of this schema to what `level` keeps. With `degrade` also prompts and labels
    say only what metadata may say; a form's values are always asked of the scene."""
    return _Compiler(resolve, level, degrade).cut(schema)


class _Compiler:
    def __init__(self, resolve: Resolve, level: Kept, degrade: bool) -> None:
        self._resolve = resolve
        self._allowed = LEVELS[: LEVELS.index(level) + 1]
        self._degrade = degrade

    def cut(self, schema: Schema) -> Cut:
        schema = resolved(schema, self._resolve)
        if schema["x-capture"] not in self._allowed:
            return _go
        match schema.get("x-degrade"):
            case "values":
                return _values
            case "prompt" if self._degrade:
                return _prompt
            case "label" if self._degrade:
                return _label
        if "properties" in schema:
            cuts = {name: self.cut(member) for name, member in schema["properties"].items()}
            active = {name: cut for name, cut in cuts.items() if cut is not keep}
            return _object(active) if active else keep
        if "items" in schema:
            item = self.cut(schema["items"])
            return keep if item is keep else _array(item)
        return keep


def _go(value: Any, around: Any, scene: Scene) -> Any:
    scene.above += 1
    return _GONE


def _values(value: Any, around: Any, scene: Scene) -> Any:
    gated = scene.values(value)
    gone = len(value) - len(gated.kept)
    scene.above += gone - gated.credentials
    return gated.kept if gone else value


def _prompt(value: Any, around: Any, scene: Scene) -> Any:
    made = f"{scene.agent} requests {around.get('kind', 'attention')}"
    return made if scene.subject is None else f"{made}: {scene.subject}"


def _label(value: Any, around: Any, scene: Scene) -> Any:
    return around["id"]


def _object(cuts: Mapping[str, Cut]) -> Cut:
    def cut(value: Any, around: Any, scene: Scene) -> Any:
        made = value
        for name in cuts.keys() & value.keys():
            member = cuts[name](value[name], value, scene)
            if member is value[name]:
                continue
            if made is value:
                made = dict(value)
            if member is _GONE:
                del made[name]
            else:
                made[name] = member
        return made

    return cut


def _array(item: Cut) -> Cut:
    def cut(value: Any, around: Any, scene: Scene) -> Any:
        made = [item(member, value, scene) for member in value]
        if all(new is old for new, old in zip(made, value, strict=True)):
            return value
        return [member for member in made if member is not _GONE]

    return cut
