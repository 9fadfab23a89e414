"""What becomes of one content part below `full` (AHP content-item)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct


class Cut(Struct, frozen=True):
    """How much of a part stays: its description (`metadata`) or its mere presence (`omit`)."""

    selection: Literal["metadata", "omit"]


def cut_part(part: Mapping[str, Any], cut: Cut) -> dict[str, Any]:
    """The part without its content, never at a higher selection than it had.

    At `metadata` the size in UTF-8 bytes stays or is measured; a hash goes, because a short text
    can be guessed from it. At `omit` the size goes too.
    """
    selection = "omit" if part["selection"] == "omit" else cut.selection
    copy = {
        "id": part["id"],
        "kind": part["kind"],
        "mediaType": bare_media_type(part["mediaType"]),
        "selection": selection,
    }
    for name in ("category", "synthesized"):
        if name in part:
            copy[name] = part[name]
    if cut.selection == "metadata":
        size = size_of(part)
        if size is not None:
            copy["size"] = size
    return copy


def size_of(part: Mapping[str, Any]) -> int | float | None:
    """In UTF-8 bytes: of the text, or else as the part says, if it does."""
    if "text" in part:
        return utf8_size(part["text"])
    return part.get("size")


def utf8_size(text: str) -> int:
    """In bytes; without encoding what is ASCII."""
    return len(text) if text.isascii() else len(text.encode())


def bare_media_type(media_type: str) -> str:
    """Without its parameters, which may hold a file name."""
    return media_type.partition(";")[0].strip() or "application/octet-stream"
