"""How far a value goes that is written after a name: quoted, bracketed or bare."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_OPEN: Final = re.compile(r"(\\{0,16})([\"'`])")
_QUOTES: Final = {mark: re.compile(rf"(\\*+){mark}") for mark in "\"'`"}
_MARKS: Final = ("\\", '"', "'", "`")
_TRIPLE: Final = ('"""', "'''")
_LINE: Final = re.compile(r"[^\r\n]*+")
_BARE: Final = re.compile(
    r"(?:\[REDACTED:[a-z]{1,8}\]"
    r"|\$\{\w{1,64}\}"
    r"|[^\s\"'`,;&(){}\[\]<>\\]"
    r"|\\(?![\"'`])"
    r"|[,;&](?![\s\"'{\[]|\Z|[\w.-]{1,40}[\"']?\s?[=:])"
    r"|[(){}\[\]<>](?=[\w.!?#$%*+~^@])"
    r")++"
)
_MULTILINE: Final = 2_000
"""A quoted value may go on over lines for so many characters; one that doesn't end there ends with
its line."""
_BRACKETS: Final = re.compile(r"[\[\]{}]|\"(?:[^\"\\\n]|\\.)*+\"")


class Extent(NamedTuple):
    """Where a value is; `quoted` without its quotation marks."""

    start: int
    end: int
    quoted: bool


def extent(text: str, at: int) -> Extent | None:
    """The value that starts at `at`, None if there is none."""
    if text[at : at + 1] in _MARKS:
        if (triple := text[at : at + 3]) in _TRIPLE:
            end = text.find(triple, at + 3)
            return Extent(at + 3, end if end >= 0 else len(text), True)
        opening = _OPEN.match(text, at)
        if opening is not None:
            return Extent(opening.end(), _closing(text, opening), True)
    bare = _BARE.match(text, at)
    return None if bare is None else Extent(at, bare.end(), False)


def _closing(text: str, opening: re.Match[str]) -> int:
    """Where the quotation ends: at a mark escaped as often as the opening one."""
    unit = len(opening[1]) + 1
    quotes = _QUOTES[opening[2]]
    near = min(len(text), opening.end() + _MULTILINE)
    closed = _closed(quotes, unit, text, opening.end(), near)
    if closed is not None:
        return closed
    line = _LINE.match(text, opening.end())
    line_end = line.end() if line is not None else len(text)
    if line_end > near:
        closed = _closed(quotes, unit, text, near, line_end)
    return line_end if closed is None else closed


def _closed(quotes: re.Pattern[str], unit: int, text: str, at: int, end: int) -> int | None:
    for found in quotes.finditer(text, at, end):
        escapes = len(found[1])
        if escapes % (2 * unit) == unit - 1 or (unit > 1 and escapes < unit - 1):
            return found.end() - unit
    return None


def bracketed(text: str, at: int) -> int:
    """The end of the object or array that starts at `at`, quotations skipped; one that has no end
    within reach goes as far as that."""
    depth = 0
    reach = min(len(text), at + _MULTILINE)
    for found in _BRACKETS.finditer(text, at, reach):
        if found[0] in "[{":
            depth += 1
        elif found[0] in "]}":
            depth -= 1
            if depth == 0:
                return found.end()
    return reach
