"""What tells of a person: e-mail addresses, telephone numbers, and names in home directories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hookbus.policies.redaction.spans import Span

_HOST: Final = re.compile(r"@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_USER: Final = re.compile(r"[\w.%+'-]*+")
_NOBODY: Final = frozenset(("git", "hg", "svn"))
"""Users of remote repositories: `git@host:path` is an address of no person."""

_PHONE: Final = re.compile(  # by its first character, which is quick to find
    r"[+(0-9](?<![\w+.][+(0-9])(?:"
    r"(?<=\+)\d{1,3}(?:[ .-]?\(\d{1,5}\))?(?:[ ./-]{0,2}\d){5,13}"
    r"|(?<=0)0[1-9]\d{0,2}(?:[ ./-]{0,2}\d){7,12}"
    r"|(?<=1)[ .-](?:\([2-9]\d{2}\)[ .-]?\d{3}[ .-]|[2-9]\d{2}([ .-])\d{3}\1)\d{4}"
    r"|(?<=\()[2-9]\d{2}\)[ .-]?\d{3}[ .-]\d{4}"
    r"|(?<=[2-9])\d{2}([ .-])\d{3}\2\d{4}"
    r")(?![\w-])(?!\.\d)"
)
_CALLS: Final = ("phone", "tel", "mobile", "cell", "fax", "call", "sms", "whatsapp")
_CALLED: Final = re.compile(
    rf"(?<![A-Za-z])(?:telephone|{'|'.join(_CALLS)})"
    r"(?:[ _-]?(?:number|no|nr|me|us|at|on)){0,2}[ .:=\"']{1,5}"
    r"(\+?\(?\d(?:[ ()./-]{0,2}\d){6,14})(?![\w-])",
    re.IGNORECASE,
)
_DATE: Final = re.compile(r"(?:19|20)\d\d[-./](?:0?[1-9]|1[0-2])[-./]")

_POSIX: Final = re.compile(  # by its first slash, which is quick to find
    r"/(?:(?<![\w.~/\\-]/)(?:(?:mnt/)?[A-Za-z](?=/Users/)/)?"
    r"(?:home|Users)/(?!Shared\b)(?!Public\b)[^/\s\"'`<>|:*?\\;,(){}\[\]&$=]{1,64}+"
    r"|(?<=file:///)(?:home|Users)/(?!Shared\b)[^/\s\"'`<>|:*?\\;,(){}\[\]&$=]{1,64}+"
    r"|(?<![\w.~/\\-]/)root(?![\w.-]))"
)
_WINDOWS: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]:([\\/]{1,4})(?:Users|Documents and Settings)\1"
    r"(?!(?:Public|Default|All Users)\b)"
    r"(?:[^\\/:*?\"<>|\r\n]{1,64}(?=[\\/])|[^\\/:*?\"<>|\s]{1,64})",
    re.IGNORECASE,
)


def emails(text: str) -> Iterator[Span]:
    """E-mail addresses. Each is read from its mark: the host first, then the user backwards."""
    mark = last = 0
    for host in _HOST.finditer(text):
        at = host.start()
        mark = max(mark, text.rfind("@", mark, at) + 1)
        user = _USER.match(text[mark:at][::-1])
        start = at - user.end() if user is not None else at
        mark = at + 1
        if last <= start < at:
            last = host.end()
            if text[start:at].lower() not in _NOBODY:
                yield Span(start, last, "pii")


def phones(text: str, lower: str) -> Iterator[Span]:
    """Telephone numbers: international ones, North American ones in groups, and whatever has at
    least seven digits after a word such as `tel`. Bare digits are no telephone number.

    `lower` is the text in lower case."""
    for found in _PHONE.finditer(text):
        if not _is_decimal(found[0]):
            yield Span(found.start(), found.end(), "pii")
    if text.isascii() and not any(word in lower for word in _CALLS):
        return
    for found in _CALLED.finditer(text):
        if not _DATE.match(found[1]):
            yield Span(found.start(1), found.end(1), "pii")


def _is_decimal(number: str) -> bool:
    return number.count(".") == 1 and not any(mark in number for mark in " -/(")


class Home:
    """The home directory that the operator names."""

    def __init__(self, path: str | None) -> None:
        directory = (path or "").rstrip("/\\")
        named = directory and not directory.endswith(":")  # else it is none, or the root
        self._directory = directory if named else None
        written = re.escape(directory)
        self._pattern = re.compile(rf"(?<![\w.~/\\-]){written}(?![\w-])(?!\.\w)")
        self.named = self._directory is not None

    def is_in(self, text: str) -> bool:
        """Whether it is in the text, even as the start of a longer name."""
        return self._directory is not None and self._directory in text

    def spans(self, text: str) -> list[Span]:
        """Where it is, and not the start of a longer name."""
        return _each(self._pattern, text) if self.is_in(text) else []


def posix_homes(text: str) -> list[Span]:
    """Home directories of any user on Linux and macOS."""
    return _each(_POSIX, text)


def windows_homes(text: str) -> list[Span]:
    """Home directories of any user on Windows."""
    return _each(_WINDOWS, text) if may_have_drive(text) else []


def may_have_drive(text: str) -> bool:
    """Whether there is what a path on Windows needs."""
    return ":" in text and ("\\" in text or "/" in text)


def _each(pattern: re.Pattern[str], text: str) -> list[Span]:
    return [Span(*found.span(), "home") for found in pattern.finditer(text)]
