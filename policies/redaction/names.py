"""Which member names and variable names are those of a credential."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hookbus.codecs.credentials import asks_credential

LONGEST_NAME: Final = 256
"""In characters; a longer key is a text, not a name."""

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


def names_credential(name: str, value: Any = "") -> bool:
    """Whether a key, header or variable of this name holds a credential: whole words in any case,
    apart at case, digit and punctuation boundaries, or the end of a joined word.

    `value` helps with amounts: `max_tokens` with a number, or nothing but numbers inside, is none.
    """
    if not _STEMS.search(name) or len(name) > LONGEST_NAME:
        return False
    words = [word.lower() for word in _WORD.findall(_BOUNDARY.sub(" ", name))]
    if not words or (len(words) > 1 and words[-1] in _ABOUT):
        return False
    if _is_amount(value) and ("tokens" in words or words[0] == "max" or words == ["card"]):
        return False
    if words[-1] in ("card", "cards", "pin", "pins") and isinstance(value, Mapping | list | bool):
        return False  # of a page or a map; what is inside is looked at by itself
    if words[-1] == "pass" or name == "_auth":
        return isinstance(value, str) and not _is_amount(value)
    if asks_credential(name, None, number=_is_amount(value)):
        return True
    return any(word in _MORE or word.endswith(_ENDINGS) for word in words)


def _is_amount(value: Any) -> bool:
    """A number, its decimal text, or nothing but numbers inside."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) <= 10
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_amount, value.values()))
    return isinstance(value, int | float)
