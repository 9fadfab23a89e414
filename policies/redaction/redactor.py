"""The redaction pipeline, on decoded values (AEP-0003 §9.4 as the floor).

Secrets -> `[REDACTED:secret]`, listed values -> the same, home directories -> `~`, e-mail addresses
and telephone numbers -> `[REDACTED:pii]`. Where two overlap, the stricter takes both.

It is pure, and what it redacted it leaves as it is: `text(text(x)) == text(x)`.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from hookbus.policies.redaction import trees
from hookbus.policies.redaction.assignments import assignments
from hookbus.policies.redaction.cards import cards
from hookbus.policies.redaction.listed import listed, spellings
from hookbus.policies.redaction.people import emails, home_pattern, homes, phones
from hookbus.policies.redaction.spans import SECRET, Span, merged, replaced
from hookbus.policies.redaction.tokens import pem, schemes, tokens
from hookbus.policies.redaction.urls import urls
from hookbus.policies.redaction.words import has_number, lowered

_ROUNDS: Final = 8
"""A replacement may lay bare what stood beside it, so a text is read until nothing changes; one
that still does after so many rounds is a secret as a whole."""


class Settings(Struct, frozen=True):
    """What the operator says: `secrets` are values that may never appear (shorter than four
    characters they are ignored, see `listed.too_short`), `home` is a directory to shorten besides
    those that are known by their place, `pii` whether addresses and telephone numbers go."""

    secrets: tuple[str, ...] = ()
    home: str | None = None
    pii: bool = True


class Redactor:
    """Redacts texts and JSON trees; compiled once from its settings."""

    def __init__(self, settings: Settings) -> None:
        self._needles = spellings(settings.secrets)
        self._home = home_pattern(settings.home)
        self._pii = settings.pii

    def text(self, text: str) -> str:
        """The text without what has to go. JSON objects and arrays that are texts are redacted as
        trees, and stay JSON."""
        return trees.embedded(text, self.value, self._plain)

    def texts(self, texts: Sequence[str], joint: str = "") -> list[str]:
        """Adjacent texts, each redacted; what is split over them goes from all of them. `joint` is
        what is taken to stand between them."""
        if len(texts) < 2:
            return [self.text(text) for text in texts]
        made = list(texts)
        for _ in range(_ROUNDS):
            again = self._across(made, joint)
            if again == made:
                return made
            made = again
        return [SECRET for _ in texts]

    def value(self, tree: Any) -> Any:
        """A JSON tree of the same shape: the same keys, lists as long, texts still texts. The value
        of a credential-named key becomes the token, whatever it was; so does a number whose decimal
        text is a secret."""
        return trees.redacted(tree, self)

    def number_is_secret(self, number: int | float) -> bool:
        """Whether the decimal text of a number is a card's or has a listed value in it."""
        text = repr(number)
        return any(True for _ in cards(text)) or any(needle in text for needle in self._needles)

    def _plain(self, text: str) -> str:
        for _ in range(_ROUNDS):
            spans = self._spans(text)
            if not spans:
                return text
            again = replaced(text, spans)
            if again == text:
                return text
            text = again
        return SECRET

    def _across(self, texts: Sequence[str], joint: str) -> list[str]:
        """One round over texts: what is found in each by itself, and in all of them together."""
        trees_read = [trees.embedded(text, self.value, str) for text in texts]
        whole = self._spans(joint.join(trees_read))
        found: list[Span] = []
        places: list[int] = []
        at = 0
        for text in trees_read:
            places.append(at)
            own = [Span(a + at, b + at, kind) for a, b, kind in self._spans(text)]
            if trees.is_tree(text):  # it is JSON, and redacted by its members
                whole = [span for span in whole if not _covered(span, own)]
            else:
                found += own
            at += len(text) + len(joint)
        spans = merged((*found, *whole))
        return [
            replaced(text, _within(spans, at, at + len(text)))
            for text, at in zip(trees_read, places, strict=True)
        ]

    def _spans(self, text: str) -> list[Span]:
        """What has to go, in order. The stages of §9.4 come one after another: a credential that
        looks like an address is a credential, and the host after it stays."""
        found = merged(self._secrets(text))
        if not self._pii:
            return found
        numbers = phones(text) if has_number(text) else ()
        personal = [span for span in (*emails(text), *numbers) if not _overlaps(span, found)]
        return merged((*found, *personal)) if personal else found

    def _secrets(self, text: str) -> Iterator[Span]:
        yield from listed(text, self._needles)
        yield from pem(text)
        yield from tokens(text)
        lower = lowered(text)
        yield from schemes(text, lower)
        yield from assignments(text, lower)
        yield from urls(text)
        if has_number(text):
            yield from cards(text)
        yield from homes(text, self._home)


def _covered(span: Span, ordered: Sequence[Span]) -> bool:
    """Whether a span lies within one of several that are in order and apart."""
    after = bisect.bisect_right(ordered, span.start, key=_end)
    if after == len(ordered):
        return False
    return ordered[after].start <= span.start and span.end <= ordered[after].end


def _within(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """The spans of a part of a text, from its start."""
    first = bisect.bisect_right(spans, start, key=_end)
    found: list[Span] = []
    for span in spans[first:]:
        if span.start >= end:
            break
        found.append(Span(max(span.start, start) - start, min(span.end, end) - start, span.kind))
    return found


def _overlaps(span: Span, ordered: Sequence[Span]) -> bool:
    """Whether a span overlaps one of several that are in order and apart."""
    after = bisect.bisect_right(ordered, span.start, key=_end)
    return after < len(ordered) and ordered[after].start < span.end


def _end(span: Span) -> int:
    return span.end
