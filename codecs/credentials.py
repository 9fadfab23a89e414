"""Which form fields ask for a credential, told from their names.

English words only. They err on the side of asking: a field that merely mentions a password, or a
postal "pincode", loses its value too. A third mark, the format, never occurs:
no format of the closed MCP vocabulary is one of a credential.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD: Final = re.compile(r"[^\W\d_]+")

_WORDS: Final = frozenset(
    {
        *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "token", "credential"),
        *("cred", "apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken"),
        *("jwt", "pin", "pincode", "otp", "totp", "mnemonic", "card", "cvv", "cvc"),
    }
)
_PAIRS: Final = frozenset(
    {
        *((kind, "key") for kind in ("api", "access", "private", "secret", "signing", "auth")),
        *((kind, "key") for kind in ("encryption", "ssh", "master", "account", "license")),
        *((kind, "code") for kind in ("security", "verification", "recovery", "backup", "access")),
        *((kind, "phrase") for kind in ("pass", "seed", "recovery")),
        *(("pass", "word"), ("pass", "code"), ("connection", "string")),
    }
)
_ENDS: Final = _WORDS | {last for _, last in _PAIRS}
_STEMS: Final = tuple(
    stem for stem in sorted(_ENDS) if not any(other in stem for other in _ENDS - {stem})
)
"""One of them is in every name that asks; most names are done with when none is."""
_LONGEST: Final = 1_000
"""Longer names, in characters, aren't taken apart: a stem in them is enough."""
_LONGEST_REMEMBERED: Final = 128
_AMOUNTS: Final = frozenset({"count", "limit", "budget", "usage", "quota", "total", "cost"})


def asks_credential(key: str, title: str | None, *, number: bool) -> bool:
    """Whether a field with this property key and title asks for a password, a token, a PIN, a card
    or the like: whole words, in any case, apart at case, digit and punctuation boundaries.

    `number` tells of a number field (or a numeric answer): there `tokens`, and `token` before a
    word such as `count`, are amounts of model tokens and no credential.
    """
    return _names_one(key, number) or (title is not None and _names_one(title, number))


def _names_one(text: str, number: bool) -> bool:
    if len(text) > _LONGEST_REMEMBERED:
        return _judged(text, number)
    return _remembered(text, number)


def _judged(text: str, number: bool) -> bool:
    lowered = text.lower()
    if not any(map(lowered.__contains__, _STEMS)):
        return False
    if len(text) > _LONGEST:
        return True
    words = [word.lower() for word in _WORD.findall(_BOUNDARY.sub(" ", text))]
    if number:
        words = _without_amounts(words)
    singular = [word if word.endswith("ss") else word.removesuffix("s") for word in words]
    return not (_WORDS.isdisjoint(singular) and _PAIRS.isdisjoint(pairwise(singular)))


_remembered = lru_cache(4096)(_judged)  # forms ask for the same fields again and again


def _without_amounts(words: Sequence[str]) -> list[str]:
    """The words without those for amounts of tokens."""
    following = [*words[1:], ""]
    return [
        word
        for word, after in zip(words, following, strict=True)
        if word != "tokens" and not (word == "token" and after in _AMOUNTS)
    ]
