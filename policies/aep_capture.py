"""Makes the copies of an AEP event that routes may write (AEP-0001 §8.2).

A hop may leave content out and may never vouch for it: `full` under a `redacted` ceiling becomes
`metadata`. An event whose ceiling is no lower than its level passes byte for byte, unless its data
exceed the level that it declares: then they are cut down to it first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from hookbus.codecs.form import Form
from hookbus.policies.aep_plan import Cut, Kept, Scene, compile_cut, keep
from hookbus.policies.aep_values import gate_values, without_credentials
from hookbus.policies.fates import Resolve, Schema
from hookbus.policies.forms import Values
from hookbus.policies.levels import Grant, Level, lower

DEFAULT_LEVEL: Level = "metadata"

_DIGEST = "_digest"


class Admitted(Struct, frozen=True):
    """An event as its declared level allows it; `tree` is the event's own where it kept to it."""

    tree: dict[str, Any]
    exceeded: bool
    """Whether data above the declared level went."""


def level_of(event: Mapping[str, Any]) -> Level:
    """The level that a valid AEP event declares."""
    level: Level = event.get("capture", DEFAULT_LEVEL)
    return level


def grant_hop(level: Level, ceiling: Level) -> Grant:
    """The copy that a route with this ceiling may write of an event at this level, without a
    redaction pipeline."""
    honoured = lower(level, ceiling)
    if honoured == "redacted" and level == "full":
        honoured = "metadata"
    return Grant(honoured, rewrite=honoured != level)


class AepRewriter:
    """The cuts of all registered types, compiled once.

    `payloads` maps a type to the schema of its data; `resolve` finds what a `$ref` in it points to.
    Types without a declared field, and all that are not registered, have no levels: their data
    need the level of the whole event.
    """

    def __init__(self, payloads: Mapping[str, Schema], resolve: Resolve) -> None:
        mapped = {kind: schema for kind, schema in payloads.items() if "properties" in schema}
        levels: tuple[Kept, ...] = ("metadata", "redacted")
        self._admissions: dict[tuple[str, Level], Cut] = {
            (kind, level): compile_cut(schema, resolve, level, degrade=False)
            for kind, schema in mapped.items()
            for level in levels
        }
        self._cuts: dict[tuple[str, Level], Cut] = {
            (kind, level): compile_cut(schema, resolve, level, degrade=level == "metadata")
            for kind, schema in mapped.items()
            for level in levels
        }

    def admit(self, event: dict[str, Any], form: Form | None = None) -> Admitted:
        """The event cut down to the level that it declares. Below `full` it also loses the answers
        that no copy there may hold (`hookbus.policies.aep_values`), which is no excess. At
        `metadata` its prompt, labels and values are its emitter's word, unless the form is at hand
        to hold the values against.
        """
        level = level_of(event)
        data = event.get("data")
        if not data or level == "full":
            return Admitted(event, exceeded=False)
        if level == "none":
            return Admitted(_without_data(event), exceeded=True)
        cut = self._admissions.get((event["type"], level), keep)
        scene = _scene(event, partial(_admitted_values, form, level))
        made = cut(data, None, scene)
        if made is data:
            return Admitted(event, exceeded=False)
        return Admitted({**event, "data": made}, exceeded=scene.above > 0)

    def lower(
        self, event: dict[str, Any], level: Level, form: Form | None = None
    ) -> dict[str, Any]:
        """The copy at `level`, which is below the event's own. At `redacted` texts stay as they
        are: whoever asks for that runs the redaction pipeline over the copy."""
        made = {**event, "capture": level}
        data = event.get("data")
        if level == "none" or data is None:
            return _without_data(made)
        cut = self._cuts.get((event["type"], level))
        if cut is None:
            return _without_data(made)
        made["data"] = cut(data, None, _scene(event, lambda v: gate_values(form, v, level)))
        return made


def without_digests(event: dict[str, Any]) -> dict[str, Any]:
    """The event without the digests in its data (`args_digest` and the like), which let whoever can
    guess a content prove the guess; the event itself if there are none."""
    data = event.get("data", {})
    kept = {name: value for name, value in data.items() if not name.endswith(_DIGEST)}
    return event if len(kept) == len(data) else {**event, "data": kept}


def _without_data(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "data"}


def _scene(event: Mapping[str, Any], values: Callable[[Mapping[str, Any]], Values]) -> Scene:
    return Scene(event["agent"], event.get("subject"), values)


def _admitted_values(form: Form | None, level: Level, values: Mapping[str, Any]) -> Values:
    if form is None:
        return without_credentials(values)
    return gate_values(form, values, level)
