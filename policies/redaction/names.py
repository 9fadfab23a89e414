"""Which member names and variable names are those of a credential."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from hookbus.codecs.credentials import asks_credential

LONGEST_NAME: Final = 256
"""In characters; a longer key is a text, not a name."""
_REMEMBERED: Final = 64
"""Rules of longer names aren't kept, which bounds the memory for them."""

_MORE: Final = frozenset(
    ("authorization", "cookie", "bearer", "passwords", "creds", "htpasswd", "pgpass", "seckey")
)
_ENDINGS: Final = (
    *("password", "passwd", "passphrase", "passwort", "secret", "token", "apikey", "accesskey"),
    *("privatekey", "secretkey", "pwd", "credential", "credentials", "cookie", "authorization"),
)
"""What a word ends in that was joined without a mark: `dbpassword`, `clientsecret`."""
_WORD: Final = re.compile(r"[^\W\d_]++")
_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_STEMS: Final = re.compile(
    r"pass|pwd|secret|token|cred|key|jwt|pin|otp|mnemonic|card|cv[vc]|code|phrase|auth|cookie"
    r"|bearer|string",
    re.IGNORECASE,
)

_ABOUT: Final = frozenset(
    (
        *("count", "counts", "limit", "limits", "budget", "usage", "quota", "total", "cost"),
        *("type", "policy", "name", "names", "length", "size", "file", "path", "field", "fields"),
        *("url", "uri", "endpoint", "expiry", "expires", "expiration", "ttl", "age", "rotation"),
        *("required", "enabled", "disabled", "manager", "bucket", "store", "provider", "strength"),
        *("details", "index", "position", "format", "algorithm", "schema", "scope", "scopes"),
        *("env", "ref", "label", "title", "description", "hint", "prompt", "error", "status"),
    )
)
"""A name that ends in one of these tells something about a credential, and isn't one."""


class Rule(NamedTuple):
    """Which values under a name are credentials: amounts, or others."""

    amounts: bool
    others: bool
    texts_only: bool = False
    scalars_only: bool = False

    def takes(self, value: Any) -> bool:
        if self.texts_only and not isinstance(value, str):
            return False
        if self.scalars_only and isinstance(value, Mapping | list | bool):
            return False
        if self.amounts is self.others:
            return self.others
        return self.amounts if _is_amount(value) else self.others


def names_credential(name: str, value: Any = "") -> bool:
    """Whether a key, header or variable of this name holds a credential: whole words in any case,
    apart at case, digit and punctuation boundaries, or the end of a joined word.

    `value` helps with amounts: `max_tokens` with a number, or nothing but numbers inside, is none.
    """
    rule = rule_of(name)
    return rule is not None and rule.takes(value)


def rule_of(name: str) -> Rule | None:
    """The rule of a name, None if it is that of no credential. The last ones asked for are kept:
    few names are met again and again, and no copy withholds one."""
    return _remembered(name) if len(name) <= _REMEMBERED else _rule(name)


def _rule(name: str) -> Rule | None:
    if not _STEMS.search(name) or len(name) > LONGEST_NAME:
        return None
    words = [word.lower() for word in _WORD.findall(_BOUNDARY.sub(" ", name))]
    if not words or (len(words) > 1 and words[-1] in _ABOUT):
        return None
    counts = "tokens" in words or words[0] == "max" or words == ["card"]
    if words[-1] == "pass" or name == "_auth":
        return Rule(amounts=False, others=True, texts_only=True)
    more = any(word in _MORE or word.endswith(_ENDINGS) for word in words)
    amounts = not counts and (more or asks_credential(name, None, number=True))
    others = more or asks_credential(name, None, number=False)
    if not amounts and not others:
        return None
    # a card or pin may be one of a page or a map; what is inside of it is looked at by itself
    return Rule(amounts, others, scalars_only=words[-1] in ("card", "cards", "pin", "pins"))


_remembered: Final = lru_cache(4_096)(_rule)


def _is_amount(value: Any) -> bool:
    """A number, its decimal text, or nothing but numbers inside."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) <= 10
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_amount, value.values()))
    return isinstance(value, int | float)
