"""What tells of a person: e-mail addresses, telephone numbers, and names in home directories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hookbus.policies.redaction.spans import Span

_EMAIL: Final = re.compile(
    r"(?<![\w.%+'-])([\w.%+'-]++)@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])"
)
_NOBODY: Final = frozenset(("git", "hg", "svn"))
"""Users of remote repositories: `git@host:path` is an address of no person."""

_SEPARATOR: Final = r"[ ./-]"
_PHONE: Final = re.compile(
    r"(?<![\w+.])(?:"
    r"\+\d{1,3}(?:[ .-]?\(\d{1,5}\))?(?:[ ./-]{0,2}\d){5,13}"
    r"|00[1-9]\d{0,2}(?:[ ./-]{0,2}\d){7,12}"
    r"|(?:1[ .-])?(?:\([2-9]\d{2}\)[ .-]?\d{3}[ .-]|[2-9]\d{2}([ .-])\d{3}\1)\d{4}"
    r")(?![\w-])(?!\.\d)"
)
_CALLED: Final = re.compile(
    r"(?<![A-Za-z])(?:phone|tel|telephone|mobile|cell|fax|call|sms|whatsapp)"
    r"(?:[ _-]?(?:number|no|nr|me|us|at|on)){0,2}[ .:=\"']{1,5}"
    r"(\+?\(?\d(?:[ ()./-]{0,2}\d){6,14})(?![\w-])",
    re.IGNORECASE,
)
_DATE: Final = re.compile(r"(?:19|20)\d\d[-./](?:0?[1-9]|1[0-2])[-./]")

_POSIX: Final = re.compile(
    r"(?<![\w.~/\\-])(?:(?:/mnt)?/[A-Za-z](?=/Users/))?"
    r"/(?:home|Users)/(?!Shared\b)(?!Public\b)[^/\s\"'`<>|:*?\\;,(){}\[\]&$=]{1,64}+"
    r"|(?<=file://)/(?:home|Users)/(?!Shared\b)[^/\s\"'`<>|:*?\\;,(){}\[\]&$=]{1,64}+"
    r"|(?<![\w.~/\\-])/root(?![\w.-])"
)
_WINDOWS: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]:([\\/]{1,4})(?:Users|Documents and Settings)\1"
    r"(?!(?:Public|Default|All Users)\b)"
    r"(?:[^\\/:*?\"<>|\r\n]{1,64}(?=[\\/])|[^\\/:*?\"<>|\s]{1,64})",
    re.IGNORECASE,
)


def emails(text: str) -> Iterator[Span]:
    """E-mail addresses."""
    if "@" in text:
        for found in _EMAIL.finditer(text):
            if found[1].lower() not in _NOBODY:
                yield Span(found.start(), found.end(), "pii")


def phones(text: str) -> Iterator[Span]:
    """Telephone numbers: international ones, North American ones in groups, and whatever has at
    least seven digits after a word such as `tel`. Bare digits are no telephone number."""
    for found in _PHONE.finditer(text):
        if not _is_decimal(found[0]):
            yield Span(found.start(), found.end(), "pii")
    for found in _CALLED.finditer(text):
        if not _DATE.match(found[1]):
            yield Span(found.start(1), found.end(1), "pii")


def _is_decimal(number: str) -> bool:
    return number.count(".") == 1 and not any(mark in number for mark in " -/(")


def home_pattern(home: str | None) -> re.Pattern[str] | None:
    """The directory that the operator names, where it is not the start of a longer name; None for
    no directory, or the root."""
    directory = (home or "").rstrip("/\\")
    if not directory or directory.endswith(":"):
        return None
    return re.compile(rf"(?<![\w.~/\\-]){re.escape(directory)}(?![\w-])(?!\.\w)")


def homes(text: str, configured: re.Pattern[str] | None) -> Iterator[Span]:
    """Home directories of any user on Linux, macOS and Windows, and the configured one."""
    patterns = [configured] if configured is not None else []
    if "/home/" in text or "/Users/" in text or "/root" in text:
        patterns.append(_POSIX)
    if ":" in text and ("\\" in text or "/" in text):
        patterns.append(_WINDOWS)
    for pattern in patterns:
        for found in pattern.finditer(text):
            yield Span(found.start(), found.end(), "home")
