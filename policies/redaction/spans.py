"""Spans of a text that have to go, and what takes their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

Kind = Literal["secret", "pii", "home"]

REPLACEMENT: Final[dict[Kind, str]] = {
    "secret": "[REDACTED:secret]",
    "pii": "[REDACTED:pii]",
    "home": "~",
}
SECRET: Final = REPLACEMENT["secret"]

_RANK: Final[dict[Kind, int]] = {"home": 0, "pii": 1, "secret": 2}


class Span(NamedTuple):
    """Characters `start` up to `end` of a text."""

    start: int
    end: int
    kind: Kind


def merged(spans: Sequence[Span]) -> list[Span]:
    """In order and without overlaps; where spans overlap, the strictest kind takes all of them."""
    if len(spans) < 2:
        return [span for span in spans if span.end > span.start]
    ordered: list[Span] = []
    for span in sorted(spans):
        if ordered and span.start < ordered[-1].end:
            last = ordered[-1]
            kind = last.kind if _RANK[last.kind] >= _RANK[span.kind] else span.kind
            ordered[-1] = Span(last.start, max(last.end, span.end), kind)
        elif span.end > span.start:
            ordered.append(span)
    return ordered


def replaced(text: str, spans: Sequence[Span]) -> str:
    """The text with its `merged` spans replaced."""
    if len(spans) == 1:
        (start, end, kind) = spans[0]
        return f"{text[:start]}{REPLACEMENT[kind]}{text[end:]}"
    pieces: list[str] = []
    at = 0
    for start, end, kind in spans:
        pieces += (text[at:start], REPLACEMENT[kind])
        at = end
    pieces.append(text[at:])
    return "".join(pieces)
