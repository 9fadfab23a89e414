"""Makes the copy of an AHP event that one route may write (DESIGN §5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from hookbus.policies.form_extension import FORM_EXTENSION
from hookbus.policies.levels import CAPTURE_EXTENSION, Grant
from hookbus.policies.part_views import Visit, compile_visit
from hookbus.policies.plan import REASON, Below, Resolve, Schema, Step, compile_plan
from hookbus.policies.selection import Selection, view


class View(Struct, frozen=True):
    """What a route shows besides its level: of AHP events the content that it selects, and
    `native`; of AEP events the digests in their data."""

    selection: Selection | None = None
    native: bool = True
    digests: bool = True

    @property
    def whole(self) -> bool:
        """Whether it shows everything of an AHP event."""
        return self.selection is None and self.native


class FormNote(Struct, frozen=True):
    """What the copies of an elicitation say of its form: the extension `dev.hookbus.form`, and the
    code of a nonconforming body with the JSON Pointer of the part that held it."""

    extension: dict[str, Any] | None
    fault: str | None = None
    at: str = ""


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
        self._visits: dict[str, Visit | None] = {
            event_type: compile_visit(schema, resolve) for event_type, schema in schemas.items()
        }

    def copy(
        self, event: Mapping[str, Any], granted: Grant, shown: View, note: FormNote | None
    ) -> dict[str, Any]:
        """The copy of a valid AHP event; the event itself is left as it is.

        A copy is valid for any AHP receiver, names in its `gaps` what was withheld (at
        `metadata`), and declares its level in the extension `dev.hookbus.capture`. Making the same
        copy of a copy changes nothing.
        """
        return self.show(self.gate(event, granted, note), shown)

    def gate(
        self, event: Mapping[str, Any], granted: Grant, note: FormNote | None
    ) -> dict[str, Any]:
        """The copy at its level, before a view of it is taken."""
        if granted.level in ("none", "metadata"):
            return self._cut(event, granted.level, note)
        declaration = {CAPTURE_EXTENSION: {"level": granted.level}}
        return {**event, "extensions": {**event.get("extensions", {}), **declaration}}

    def show(self, gated: dict[str, Any], shown: View) -> dict[str, Any]:
        """The view of a gated copy; shares with it what it doesn't change."""
        made = gated
        if not shown.native and "native" in made:
            made = {name: value for name, value in made.items() if name != "native"}
        visit = self._visits[made["type"]]
        if shown.selection is not None and visit is not None:
            made = visit(made, partial(view, shown.selection))
        return made

    def _cut(self, event: Mapping[str, Any], level: Below, note: FormNote | None) -> dict[str, Any]:
        withheld: list[str] = []
        made: dict[str, Any] = self._plans[event["type"], level](event, "", withheld)
        ours: dict[str, Any] = {CAPTURE_EXTENSION: {"level": level}}
        if level == "metadata":
            foreign = event.get("extensions", {}).keys() - {CAPTURE_EXTENSION, FORM_EXTENSION}
            gaps = [(at, REASON) for at in withheld if at != "/extensions" or foreign]
            if note is not None and note.extension is not None:
                ours[FORM_EXTENSION] = note.extension
            if note is not None and note.fault is not None:
                gaps.append((note.at, note.fault))
            _note(made, gaps)
        made["extensions"] = ours
        return made


def _note(copy: dict[str, Any], new: list[tuple[str, str]]) -> None:
    """Add the gaps, as (pointer, reason), that the copy doesn't have yet."""
    gaps = copy.get("gaps", [])
    known = {(gap["path"], gap["reason"]) for gap in gaps}
    missing = [{"path": at, "reason": reason} for at, reason in new if (at, reason) not in known]
    if missing:
        copy["gaps"] = gaps + missing
