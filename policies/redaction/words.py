"""Finds words in a text quickly, so that the expensive patterns are tried where there is one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_DIGITS: Final = re.compile(r"[0-9](?:[ ()./-]{0,2}[0-9]){6}")


def has_number(text: str) -> bool:
    """Whether a text has digits enough for a telephone number or a card."""
    return _DIGITS.search(text) is not None


def lowered(text: str) -> str:
    """The text in lower case, each character at its place: one whose lower case is longer stays."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def places(lower: str, words: Iterable[str]) -> list[int]:
    """Where one of the words starts, in order."""
    found: set[int] = set()
    for word in words:
        at = lower.find(word)
        while at >= 0:
            found.add(at)
            at = lower.find(word, at + len(word))
    return sorted(found)
