"""Cuts an AHP event down to a capture level: the plan of its type, then the marks of a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookbus.policies.levels import CAPTURE_EXTENSION
from hookbus.policies.plan import REASON, Below, Resolve, Schema, Step, compile_plan


class Rewriter:
    """The rewriting plans of all event types, compiled once.

    `schemas` maps an event type to its schema; `resolve` finds what a `$ref` in it points to.
    """

    def __init__(self, schemas: Mapping[str, Schema], resolve: Resolve) -> None:
        levels: tuple[Below, ...] = ("none", "metadata")
        self._plans: dict[tuple[str, Below], Step] = {
            (event_type, level): compile_plan(schema, resolve, level)
            for event_type, schema in schemas.items()
            for level in levels
        }

    def rewrite(self, event: Mapping[str, Any], level: Below) -> dict[str, Any]:
        """The copy of a valid AHP event at `level`; the event itself is left as it is.

        The copy is valid for any AHP receiver, names in its `gaps` what was withheld (above
        `none`), and declares its level in the extension `dev.hookbus.capture`. Rewriting a copy
        again changes nothing.
        """
        withheld: list[str] = []
        copy: dict[str, Any] = self._plans[event["type"], level](event, "", withheld)
        foreign = any(name != CAPTURE_EXTENSION for name in event.get("extensions", ()))
        if level == "metadata":
            _note(copy, [at for at in withheld if at != "/extensions" or foreign])
        copy["extensions"] = {CAPTURE_EXTENSION: {"level": level}}
        return copy


def _note(copy: dict[str, Any], withheld: list[str]) -> None:
    """Add a gap for each withheld member that has none yet."""
    gaps = copy.get("gaps", [])
    known = {gap["path"] for gap in gaps if gap["reason"] == REASON}
    new = [{"path": at, "reason": REASON} for at in withheld if at not in known]
    if new:
        copy["gaps"] = gaps + new
