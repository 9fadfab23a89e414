"""Makes the copy of an AHP event that one route may write."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct

from hookbus.codecs.form import Form
from hookbus.policies.fates import Below, Resolve, Schema
from hookbus.policies.form_extension import FORM_EXTENSION
from hookbus.policies.levels import CAPTURE_EXTENSION, Grant
from hookbus.policies.part_views import Visit, compile_visit
from hookbus.policies.parts import Cut, cut_part
from hookbus.policies.plan import REASON, Step, compile_plan
from hookbus.policies.redacted_elicitation import redacted_body
from hookbus.policies.redacted_plan import compile_redaction, part_with
from hookbus.policies.redaction.contract import Redacts
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
    code of a nonconforming body with the JSON Pointer of the part that held it. `form` is the one
    that is asked, or answered, where it is at hand."""

    extension: dict[str, Any] | None
    fault: str | None = None
    at: str = ""
    form: Form | None = None


_STREAMED: Final[Mapping[str, str]] = {"turn.progress": "delta", "tool.progress": "partialOutput"}
"""Messages that come in pieces: what is split over the pieces can't be found in one of them."""
_CHANGES: Final = ("task", "workspace")
_METADATA: Final = Cut("metadata")
_BODIES: Final[Mapping[str, Literal["request", "result"]]] = {
    "user.elicitation.request": "request",
    "user.elicitation.result": "result",
}
"""The members that hold the bodies of elicitations."""


class Rewriter:
    """The rewriting plans of all event types, compiled once.

    `schemas` maps an event type to its schema; `resolve` finds what a `$ref` in it points to.
    Without a `redactor` no copy can be granted `redact`.
    """

    def __init__(
        self,
        schemas: Mapping[str, Schema],
        resolve: Resolve,
        redactor: Redacts | None = None,
    ) -> None:
        levels: tuple[Below, ...] = ("none", "metadata")
        self._plans: dict[tuple[str, Below], Step] = {
            (event_type, level): compile_plan(schema, resolve, level)
            for event_type, schema in schemas.items()
            for level in levels
        }
        self._redactor = redactor
        self._redactions: dict[str, Step] = {}
        if redactor is not None:
            self._redactions = {
                event_type: compile_redaction(schema, resolve, redactor)
                for event_type, schema in schemas.items()
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
        """The copy at its level, before a view of it is taken. One that is granted `redact` raises
        whatever the redactor raises, or KeyError without one."""
        if granted.redact:
            return self._redact(event, note)
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
            told = foreign(event)
            gaps = [(at, REASON) for at in withheld if at != "/extensions" or told]
            if note is not None and note.extension is not None:
                ours[FORM_EXTENSION] = note.extension
            if note is not None and note.fault is not None:
                gaps.append((note.at, note.fault))
            _note(made, gaps)
        made["extensions"] = ours
        return made

    def _redact(self, event: Mapping[str, Any], note: FormNote | None) -> dict[str, Any]:
        kind = event["type"]
        body = _body_of(event) if kind in _BODIES else None
        plain = event if body is None else _without_body(event, body)
        withheld: list[str] = []
        made: dict[str, Any] = self._redactions[kind](plain, "", withheld)
        gaps = [(at, REASON) for at in withheld]
        if "extensions" in event and foreign(event):
            gaps.append(("/extensions", REASON))
        if "task" in made or "workspace" in made:
            gaps += _without_no_op(made)
        if kind in _STREAMED:
            _without_pieces(event, made)
        if body is not None and self._redactor is not None:
            _with_body(event, made, body, note, self._redactor)
        if note is not None and note.fault is not None:
            gaps.append((note.at, note.fault))
        if gaps:
            _note(made, gaps)
        made["extensions"] = {CAPTURE_EXTENSION: {"level": "redacted"}}
        return made


def foreign(event: Mapping[str, Any]) -> bool:
    """Whether an event has extensions that are not ours."""
    return bool(event.get("extensions", {}).keys() - {CAPTURE_EXTENSION, FORM_EXTENSION})


def _without_no_op(copy: dict[str, Any]) -> list[tuple[str, str]]:
    """A change that was only in what is redacted would look like none, and be rejected: then what
    was before goes, and the gap says so."""
    for name in _CHANGES:
        told = copy.get(name)
        if told is not None and "prior" in told and _is_no_op(told["change"], told["prior"]):
            copy[name] = {key: value for key, value in told.items() if key != "prior"}
            return [(f"/{name}/prior", REASON)]
    return []


def _is_no_op(change: Mapping[str, Any], prior: Mapping[str, Any]) -> bool:
    return all(name in prior and prior[name] == value for name, value in change.items())


def _without_pieces(event: Mapping[str, Any], copy: dict[str, Any]) -> None:
    member = _STREAMED[event["type"]]
    parts = [cut_part(part, _METADATA) for part in event[member]["parts"]]
    copy[member] = {**copy[member], "parts": parts}


def _body_of(event: Mapping[str, Any]) -> Literal["request", "result"] | None:
    """The member that holds the body of an elicitation, if the event has one."""
    kind = _BODIES[event["type"]]
    return kind if "text" in event["elicitation"].get(kind, ()) else None


def _without_body(
    event: Mapping[str, Any], kind: Literal["request", "result"]
) -> Mapping[str, Any]:
    """The body is no text but a tree, which is redacted by itself."""
    told = event["elicitation"]
    return {**event, "elicitation": {**told, kind: cut_part(told[kind], _METADATA)}}


def _with_body(
    event: Mapping[str, Any],
    copy: dict[str, Any],
    kind: Literal["request", "result"],
    note: FormNote | None,
    redactor: Redacts,
) -> None:
    """A body that doesn't conform, or that nobody judged, is withheld: it has gone already."""
    if note is None or note.fault is not None:
        return
    part = event["elicitation"][kind]
    text = redacted_body(kind, part["text"], note.form, redactor)
    copy["elicitation"] = {**copy["elicitation"], kind: part_with(part, text)}


def _note(copy: dict[str, Any], new: list[tuple[str, str]]) -> None:
    """Add the gaps, as (pointer, reason), that the copy doesn't have yet."""
    gaps = copy.get("gaps", [])
    known = {(gap["path"], gap["reason"]) for gap in gaps}
    missing = [{"path": at, "reason": reason} for at, reason in new if (at, reason) not in known]
    if missing:
        copy["gaps"] = gaps + missing
