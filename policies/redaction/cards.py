"""Payment card numbers: digits of an issuer's range and length that pass the Luhn check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hookbus.policies.redaction.spans import Span

_CARD: Final = re.compile(  # by its first digit, which is quick to find
    r"[2-6](?<!\d[2-6])(?<!\d[.][2-6])(?:"
    r"\d{12,18}"
    r"|\d{3}([ .-]{1,2})\d{4}\1\d{4}\1\d{1,4}(?:\1\d{3})?"
    r"|(?<=3)\d{3}([ .-]{1,2})\d{6}\2\d{4,5}"
    r")(?!\d)(?!\.\d)"
)
_ISSUER: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11,16}"
    r"|35\d{14,17}|6(?:011|[45]\d\d|2\d\d)\d{12,15}|(?:50|5[6-8]|6[37])\d{10,17}"
)
_ZERO: Final = ord("0")
_DOUBLED: Final = bytes.maketrans(b"0123456789", b"0246813579")
_HEX: Final = re.compile(r"[0-9a-fA-F]{0,64}")
SHORTEST: Final = 13
"""In characters, and in digits."""
_HASH: Final = 32
"""So many hexadecimal digits in a row, with letters among them, are a hash and no card."""


def cards(text: str) -> Iterator[Span]:
    """The card numbers in a text, in groups or not."""
    for found in _CARD.finditer(text):
        digits = found[0].replace(" ", "").replace("-", "").replace(".", "")
        if _ISSUER.fullmatch(digits) and _luhn(digits) and not _in_hash(text, found):
            yield Span(found.start(), found.end(), "secret")


def _luhn(digits: str) -> bool:
    """The check of these digits, which may be those of any script."""
    if not digits.isascii():
        digits = str(int(digits))
    raw = digits.encode()
    doubled = raw[-2::-2].translate(_DOUBLED)
    return (sum(raw[::-2]) + sum(doubled) - len(raw) * _ZERO) % 10 == 0


def _in_hash(text: str, found: re.Match[str]) -> bool:
    after = _HEX.match(text, found.end())
    before = _HEX.match(text[max(0, found.start() - 64) : found.start()][::-1])
    around = (len(after[0]) if after else 0) + (len(before[0]) if before else 0)
    return around > 0 and around + found.end() - found.start() >= _HASH
