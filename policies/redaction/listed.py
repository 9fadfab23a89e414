"""Values that the operator lists: each in every spelling in which it may be written."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from ahocorasick_rs import AhoCorasick

from hookbus.policies.redaction.spans import Span

SHORTEST: Final = 4
"""In characters; shorter values would redact everything, and are ignored."""


def too_short(values: Iterable[str]) -> int:
    """How many of the listed values are ignored because they are too short."""
    return sum(len(value.strip()) < SHORTEST for value in values)


def spellings(values: Iterable[str]) -> tuple[str, ...]:
    """The values raw, JSON-escaped, percent-encoded, in base64 and base64url, longest first. An
    encoding that is padded begins with the one that isn't."""
    found: set[str] = set()
    for value in values:
        value = value.strip()
        if len(value) >= SHORTEST:
            found.update(spelling for spelling in _spelled(value) if len(spelling) >= SHORTEST)
    return tuple(sorted(found, key=lambda spelling: (-len(spelling), spelling)))


def _spelled(value: str) -> Iterator[str]:
    yield value
    for ascii_only in (True, False):
        escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield escaped.replace("/", "\\/")
        yield json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]
    raw = value.encode("utf-8", "surrogatepass")
    for encoded in (quote(raw, safe=""), quote_plus(raw), quote(raw), _percent(raw)):
        yield encoded
        yield _lower_hex(encoded)
    for padded in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        yield padded.decode().rstrip("=")


def _percent(raw: bytes) -> str:
    """Everything encoded that is no letter or digit, as in the strictest encoders."""
    return "".join(chr(b) if chr(b).isalnum() and b < 128 else f"%{b:02X}" for b in raw)


def _lower_hex(encoded: str) -> str:
    pieces = encoded.split("%")
    return "%".join([pieces[0], *(piece[:2].lower() + piece[2:] for piece in pieces[1:])])


class Listed:
    """Looks for all spellings of the listed values at once."""

    def __init__(self, values: Iterable[str]) -> None:
        needles = spellings(values)
        encoded = [needle for needle in needles if _is_unicode(needle)]
        self._find = AhoCorasick(encoded).find_matches_as_strings if encoded else None
        self._always = [needle for needle in needles if not _is_unicode(needle)]
        self._needles = needles
        self.any = bool(needles)

    def spans(self, text: str) -> Iterator[Span]:
        """Where one of them is, with the padding after it."""
        for needle in self._in(text):
            at = text.find(needle)
            while at >= 0:
                end = at + len(needle)
                yield Span(at, end + len(_padding(text, end)), "secret")
                at = text.find(needle, end)

    def are_in(self, text: str) -> bool:
        return any(needle in text for needle in self._in(text))

    def _in(self, text: str) -> Iterable[str]:
        """Those that are in the text."""
        if self._find is None:
            return self._always
        try:
            return {*self._find(text, True), *self._always}
        except UnicodeEncodeError:  # a lone surrogate
            return self._needles


def _is_unicode(text: str) -> bool:
    """Whether it is without lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _padding(text: str, at: int) -> str:
    following = text[at : at + 2]
    return following[: len(following) - len(following.lstrip("="))]
