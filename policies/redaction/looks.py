"""One look at a text: which detectors may find something in it, and at which places.

Every detector needs a word that its patterns can't match without. `quick_look` searches for all of
them at once, and in most texts finds none; `thorough_look` finds the places one by one, and leaves
it to each detector to see that it has nothing to do. What is redacted doesn't depend on which of
the two has looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from ahocorasick_rs import AhoCorasick
from msgspec import Struct

from hookbus.policies.redaction import cards
from hookbus.policies.redaction.assignments import STARTS, may_assign
from hookbus.policies.redaction.people import may_have_drive
from hookbus.policies.redaction.tokens import SCHEMES, VENDORS
from hookbus.policies.redaction.urls import may_have_query
from hookbus.policies.redaction.words import has_number, lowered, places

PEM: Final = 1 << 0
TOKEN: Final = 1 << 1
SCHEME: Final = 1 << 2
NAME: Final = 1 << 3
USER: Final = 1 << 4
URL: Final = 1 << 5
QUERY: Final = 1 << 6
EMAIL: Final = 1 << 7
HOME: Final = 1 << 8
DRIVE: Final = 1 << 9
NUMBER: Final = 1 << 10
CARD: Final = 1 << 11
_PLACES: Final = 1 << 12
"""Where the places of a word overlap, they are found one by one."""
ALL: Final = (1 << 12) - 1
_NUMBERS: Final = NUMBER | CARD
_PLACED: Final = NAME | SCHEME | TOKEN


class Seen(Struct, frozen=True, gc=False):
    """What a text holds: `kinds` are the detectors that may find something. `vendors` are the
    prefixes of tokens that may be in it, `schemes` and `names` the places where the name of an
    authentication scheme or that of a credential may start, `lower` the text in lower case."""

    kinds: int
    lower: str = ""
    vendors: Iterable[str] = ()
    schemes: Sequence[int] = ()
    names: Sequence[int] = ()


Look = Callable[[str], Seen]

NOTHING: Final = Seen(0)


def thorough_look(text: str) -> Seen:
    """All that may be in a text, without a shortcut."""
    lower = lowered(text)
    kinds = ALL if has_number(text) else ALL & ~_NUMBERS
    return Seen(kinds, lower, VENDORS, places(lower, SCHEMES), places(lower, STARTS))


def _triggers() -> Iterator[tuple[str, int]]:
    """The words, in lower case, with what each may be the start of."""
    yield "begin ", PEM
    yield "://", URL
    yield "=", QUERY
    yield "@", EMAIL
    for word in VENDORS:
        yield word.lower(), TOKEN
    for word in SCHEMES:
        yield word + " ", SCHEME
        yield word + "\t", SCHEME
    for word in STARTS:
        yield word, NAME
        for size in range(1, len(word)):
            if word.endswith(word[:size]):
                yield word + word[size:], _PLACES
    for flag in ("-u", "-user"):
        for after in " \t=":
            yield flag + after, USER
    for start in ("/home/", "/users/", "/root"):
        yield start, HOME
    for folder in ("users", "documents and settings"):
        yield "/" + folder, DRIVE
        yield "\\" + folder, DRIVE


def _gathered() -> dict[str, int]:
    kinds: dict[str, int] = {}
    for word, kind in _triggers():
        kinds[word] = kinds.get(word, 0) | kind
    return kinds


_WORDS: Final = _gathered()
_KINDS: Final = tuple(_WORDS.values())
_find: Final = AhoCorasick(_WORDS).find_matches_as_indexes
_Found = tuple[int, int, int]
"""A word by its number, where it starts, and where it ends."""
_LONGEST: Final = max(map(len, _WORDS))
_CHUNK: Final = 65_536
"""In characters."""
_WRITTEN: Final = tuple([vendor for vendor in VENDORS if vendor.lower() == w] for w in _WORDS)
"""Of each word, the prefixes of tokens that are written like it in lower case."""
_NO_DIGITS: Final = bytes(set(range(256)) - set(b"0123456789"))
_NUMBER: Final = 7
"""A telephone number, or what looks like one, has so many digits at least."""


def quick_look(text: str) -> Seen:
    """What may be in a text, by one search for all that a detector needs.

    Outside of ASCII a pattern may match other letters and digits than those of the words: there the
    ones that ignore case, and cards, are tried as soon as there may be a reason.
    """
    ascii_only = text.isascii()
    lower = text.lower() if ascii_only else lowered(text)
    raw = text.encode() if ascii_only else text.encode("utf-8", "surrogatepass")
    kinds = 0
    digits = len(raw.translate(None, _NO_DIGITS))
    if digits >= _NUMBER and has_number(text):
        kinds = _NUMBERS if digits >= cards.SHORTEST or not ascii_only else NUMBER
    if not ascii_only and may_have_drive(text):
        kinds |= DRIVE
    try:
        if len(lower) > _CHUNK:
            return _seen(text, lower, kinds, _in_chunks(lower))
        found = _find(lower, True)
    except UnicodeEncodeError:  # a lone surrogate
        return thorough_look(text)
    if found:
        return _seen(text, lower, kinds, found)
    return Seen(kinds, lower) if kinds else NOTHING


def _in_chunks(lower: str) -> Iterator[_Found]:
    """What is found in a long text, piece by piece: nothing but a word on each place would take a
    hundred times the memory of the text. Each word is found where it starts."""
    for first in range(0, len(lower), _CHUNK):
        chunk = lower[first : first + _CHUNK + _LONGEST - 1]
        for word, start, end in _find(chunk, True):
            if start < _CHUNK:
                yield word, first + start, first + end


def _seen(text: str, lower: str, kinds: int, found: Iterable[_Found]) -> Seen:
    schemes: list[int] = []
    names: list[int] = []
    vendors: set[str] = set()
    for word, start, _ in found:
        kind = _KINDS[word]
        kinds |= kind
        if kind & _PLACED:
            if kind & NAME:
                names.append(start)
            if kind & SCHEME:
                schemes.append(start)
            if kind & TOKEN:
                vendors.update(_WRITTEN[word])
    if kinds & NAME:
        if not may_assign(text):
            kinds &= ~NAME
        elif kinds & _PLACES:
            names = places(lower, STARTS)
        else:
            names.sort()
    if kinds & QUERY and not may_have_query(text):
        kinds &= ~QUERY
    if kinds & DRIVE and not may_have_drive(text):
        kinds &= ~DRIVE
    return Seen(kinds & ALL, lower, vendors, schemes, names)
