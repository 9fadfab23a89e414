"""Makes the copies below `full` of an AHP event from its derived type, straight to bytes.

What is in such a copy is the same as `hookbus.policies.capture` makes of the event's tree; its
members stand in the order of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from hookbus.policies.capture import FormNote, foreign
from hookbus.policies.fates import Below, Resolve, Schema
from hookbus.policies.form_extension import FORM_EXTENSION
from hookbus.policies.levels import CAPTURE_EXTENSION
from hookbus.policies.parts import bare_media_type, utf8_size
from hookbus.policies.plan import REASON
from hookbus.policies.selection import Selection, category_in, lowers
from hookbus.policies.struct_plan import StructCut, compile_struct_cut

_DECLARED: Final[Mapping[Below, Any]] = {
    level: {CAPTURE_EXTENSION: {"level": level}} for level in ("none", "metadata")
}
_EXTENSIONS: Final[Mapping[Below, Raw]] = {
    level: Raw(msgspec.json.encode(declared)) for level, declared in _DECLARED.items()
}
_encode: Final = msgspec.json.Encoder().encode
_bare_media_type: Final = lru_cache(256)(bare_media_type)


class _Part(Struct, gc=False):
    """A content part without its content."""

    id: str
    kind: str
    mediaType: str  # noqa: N815 - a member of AHP
    selection: str
    category: str | UnsetType = UNSET
    synthesized: bool | UnsetType = UNSET
    size: int | float | UnsetType = UNSET


class Cut:
    """An event cut to a level; what views of it show differs in its parts only."""

    __slots__ = ("_made", "_parts", "_whole")

    def __init__(self, made: Any, parts: list[_Part]) -> None:
        self._made = made
        self._parts = [(part, part.selection) for part in parts] if parts else ()
        self._whole: bytes | None = None

    def encoded(self, selection: Selection | None) -> bytes:
        """The copy as a content selection shows it, which may lower its parts once more."""
        if selection is not None and self._parts:
            for part, held in self._parts:
                part.selection = _shown(selection, part, held)
            return _encode(self._made)
        if self._whole is None:
            for part, held in self._parts:
                part.selection = held
            self._whole = _encode(self._made)
        return self._whole


class StructRewriter:
    """The cuts of all event types. The code for a type is made when it is first needed."""

    def __init__(self, schemas: Mapping[str, Schema], resolve: Resolve) -> None:
        self._schemas = schemas
        self._resolve = resolve
        self._cuts: dict[Below, dict[str, StructCut]] = {"none": {}, "metadata": {}}

    def cut(self, struct: Any, tree: Mapping[str, Any], level: Below, note: FormNote | None) -> Cut:
        """The cut of a valid event, which is at hand as its derived type and as a tree."""
        cut = self._cuts[level].get(struct.type) or self._compile(struct, level)
        withheld: list[str] = []
        parts: list[_Part] = []
        made = cut(struct, tree, withheld, _CUTTERS[level], parts)
        made.extensions = _EXTENSIONS[level]
        if level == "metadata":
            if "/extensions" in withheld and not foreign(tree):
                withheld.remove("/extensions")
            if note is not None:
                _with_note(made, note)
            if withheld:
                _note(made, [_gap(at) for at in withheld])
        return Cut(made, parts)

    def _compile(self, struct: Any, level: Below) -> StructCut:
        cut = compile_struct_cut(self._schemas[struct.type], self._resolve, level, type(struct))
        self._cuts[level][struct.type] = cut
        return cut


def _described(part: Any, parts: list[_Part]) -> _Part:
    """At `metadata`: the size in UTF-8 bytes stays or is measured."""
    text = part.text
    size = part.size if text is UNSET else utf8_size(text)
    made = _Part(
        part.id,
        part.kind,
        _bare_media_type(part.mediaType),
        "omit" if part.selection == "omit" else "metadata",
        part.category,
        part.synthesized,
        size,
    )
    parts.append(made)
    return made


def _omitted(part: Any, parts: list[_Part]) -> _Part:
    """At `none`: only its presence."""
    media_type = _bare_media_type(part.mediaType)
    made = _Part(part.id, part.kind, media_type, "omit", part.category, part.synthesized)
    parts.append(made)
    return made


_CUTTERS: Final[Mapping[Below, Callable[[Any, list[_Part]], _Part]]] = {
    "none": _omitted,
    "metadata": _described,
}


def _shown(selection: Selection, part: _Part, held: str) -> str:
    category = None if part.category is UNSET else part.category
    chosen = selection.choice(category_in(category, part.kind, part.mediaType))
    return chosen if lowers(chosen, held) else held


def _with_note(copy: Any, note: FormNote) -> None:
    if note.extension is not None:
        copy.extensions = {**_DECLARED["metadata"], FORM_EXTENSION: note.extension}
    if note.fault is not None:
        _note(copy, [_Gap(note.at, note.fault)])


class _Gap(Struct, frozen=True):
    path: str
    reason: str


@lru_cache(1024)
def _gap(at: str) -> _Gap:
    """The pointers come from the schemas, so that few are met."""
    return _Gap(at, REASON)


def _note(copy: Any, new: list[_Gap]) -> None:
    """Add the gaps that the copy doesn't have yet."""
    if not copy.gaps:
        copy.gaps = new
        return
    known = {(gap.path, gap.reason) for gap in copy.gaps}
    copy.gaps = [*copy.gaps, *(gap for gap in new if (gap.path, gap.reason) not in known)]
