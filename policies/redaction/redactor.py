"""The redaction pipeline, on decoded values (AEP-0003 §9.4 as the floor).

Secrets -> `[REDACTED:secret]`, listed values -> the same, home directories -> `~`, e-mail addresses
and telephone numbers -> `[REDACTED:pii]`. Where two overlap, the stricter takes both.

It is pure, and what it redacted it leaves as it is: `text(text(x)) == text(x)`.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from hookbus.codecs.strict import encode
from hookbus.policies.redaction import looks, trees
from hookbus.policies.redaction.assignments import assignments, users
from hookbus.policies.redaction.cards import SHORTEST, cards
from hookbus.policies.redaction.listed import Listed
from hookbus.policies.redaction.looks import Look, Seen, quick_look
from hookbus.policies.redaction.people import (
    Home,
    emails,
    phones,
    posix_homes,
    windows_homes,
)
from hookbus.policies.redaction.spans import SECRET, Span, merged, replaced
from hookbus.policies.redaction.tokens import pem, schemes, tokens
from hookbus.policies.redaction.urls import queries, urls

_ROUNDS: Final = 8
"""A replacement may lay bare what stood beside it, so a text is read until nothing changes; one
that still does after so many rounds is a secret as a whole."""


_DETECTORS: Final[Mapping[int, Callable[[str, Seen], Iterable[Span]]]] = {
    looks.PEM: lambda text, seen: pem(text),
    looks.TOKEN: lambda text, seen: tokens(text, seen.vendors),
    looks.SCHEME: lambda text, seen: schemes(text, seen.schemes),
    looks.NAME: lambda text, seen: assignments(text, seen.lower, seen.names),
    looks.USER: lambda text, seen: users(text),
    looks.URL: lambda text, seen: urls(text),
    looks.QUERY: lambda text, seen: queries(text),
    looks.CARD: lambda text, seen: cards(text),
    looks.HOME: lambda text, seen: posix_homes(text),
    looks.DRIVE: lambda text, seen: windows_homes(text),
    looks.EMAIL: lambda text, seen: emails(text),
    looks.NUMBER: lambda text, seen: phones(text, seen.lower),
}
_PERSONAL: Final = looks.EMAIL | looks.NUMBER
_SECRETS: Final = looks.ALL & ~_PERSONAL


_REMEMBERED: Final = 512
_SHORT: Final = 256
"""So many texts of so many characters at most are kept with what became of them: the input of a
tool comes before it runs and after it, and paths, commands and forms come again and again. That is
less of content than there is in the batch that the router has in hand."""


class Settings(Struct, frozen=True):
    """What the operator says: `secrets` are values that may never appear (shorter than four
    characters they are ignored, see `listed.too_short`), `home` is a directory to shorten besides
    those that are known by their place, `pii` whether addresses and telephone numbers go."""

    secrets: tuple[str, ...] = ()
    home: str | None = None
    pii: bool = True


class Redactor:
    """Redacts texts and JSON trees; compiled once from its settings. How it looks at a text
    beforehand (`look`) changes the time that it takes, and nothing else."""

    def __init__(self, settings: Settings, look: Look = quick_look) -> None:
        self._look = look
        self._listed = Listed(settings.secrets)
        self._home = Home(settings.home)
        self._ours = self._home.named or self._listed.any
        self._pii = settings.pii
        self._remembered = lru_cache(_REMEMBERED)(self._text)

    def text(self, text: str) -> str:
        """The text without what has to go. JSON objects and arrays that are texts are redacted as
        trees, and stay JSON."""
        return self._remembered(text) if len(text) <= _SHORT else self._text(text)

    def remembered(self) -> int:
        """Of how many texts it is kept what became of them."""
        return self._remembered.cache_info().currsize

    def _text(self, text: str) -> str:
        tree = trees.embedded(text)
        return self._plain(text) if tree is None else self._written(text, tree)

    def texts(self, texts: Sequence[str], joint: str = "") -> list[str]:
        """Adjacent texts, each redacted; what is split over them goes from all of them. `joint` is
        what is taken to stand between them."""
        if len(texts) < 2:
            return [self.text(text) for text in texts]
        made = list(texts)
        if self._have_nothing(made, joint):
            return made
        for _ in range(_ROUNDS):
            again = self._across(made, joint)
            if again == made:
                return made
            made = again
        return [SECRET for _ in texts]

    def value(self, tree: Any) -> Any:
        """A JSON tree of the same shape: the same keys, lists as long, texts still texts. The value
        of a credential-named key becomes the token, whatever it was; so does a number whose decimal
        text is a secret. What stays as it was is shared with the tree."""
        return trees.redacted(tree, self)

    def number_is_secret(self, number: int | float) -> bool:
        """Whether the decimal text of a number is a card's or has a listed value in it."""
        text = repr(number)
        if len(text) >= SHORTEST and any(True for _ in cards(text)):
            return True
        return self._ours and self._listed.are_in(text)

    def _written(self, text: str, tree: dict[str, Any] | list[Any]) -> str:
        """A text that is this tree, redacted."""
        made = trees.redacted(tree, self)
        return text if made is tree or made == tree else encode(made).decode()

    def _plain(self, text: str) -> str:
        for _ in range(_ROUNDS):
            seen = self._look(text)
            if not seen.kinds and not self._ours:
                return text
            spans = self._seen_spans(text, seen)
            if not spans:
                return text
            again = replaced(text, spans)
            if again == text:
                return text
            text = again
        return SECRET

    def _have_nothing(self, texts: Sequence[str], joint: str) -> bool:
        """Whether it is plain to see that nothing has to go: no text is JSON, and all together have
        nothing in them that a detector needs."""
        if any(text[:1] in ("{", "[") for text in texts):
            return False
        whole = joint.join(texts)
        ours = self._home.is_in(whole) or self._listed.are_in(whole)
        return not ours and not self._look(whole).kinds

    def _across(self, texts: Sequence[str], joint: str) -> list[str]:
        """One round over texts: what is found in each by itself, and in all of them together."""
        trees_read = [
            text if (tree := trees.embedded(text)) is None else self._written(text, tree)
            for text in texts
        ]
        whole = self._spans(joint.join(trees_read))
        found: list[Span] = []
        places: list[int] = []
        at = 0
        for text in trees_read:
            places.append(at)
            own = [Span(a + at, b + at, kind) for a, b, kind in self._spans(text)]
            if trees.embedded(text) is not None:  # it is JSON, and redacted by its members
                whole = [span for span in whole if not _covered(span, own)]
            else:
                found += own
            at += len(text) + len(joint)
        spans = merged([*found, *whole])
        return [
            replaced(text, _within(spans, at, at + len(text)))
            for text, at in zip(trees_read, places, strict=True)
        ]

    def _spans(self, text: str) -> list[Span]:
        return self._seen_spans(text, self._look(text))

    def _seen_spans(self, text: str, seen: Seen) -> list[Span]:
        """What has to go, in order. The stages of §9.4 come one after another: a credential that
        looks like an address is a credential, and the host after it stays."""
        ours = [*self._listed.spans(text), *self._home.spans(text)] if self._ours else []
        found = merged(ours + _found(text, seen, _SECRETS))
        if not self._pii or not seen.kinds & _PERSONAL:
            return found
        personal = _found(text, seen, _PERSONAL)
        personal = [span for span in personal if not _overlaps(span, found)]
        return merged(found + personal) if personal else found


def _found(text: str, seen: Seen, kinds: int) -> list[Span]:
    """What the detectors of these kinds find."""
    left = seen.kinds & kinds
    found: list[Span] = []
    while left:
        kind = left & -left
        found += _DETECTORS[kind](text, seen)
        left ^= kind
    return found


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
