"""Credentials in URLs: before the host, in the query or fragment, and in segments of the path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hookbus.policies.redaction.names import names_credential
from hookbus.policies.redaction.spans import Span

_URL: Final = re.compile(r"://([^\s/?#\"'<>`\\]*+)([^\s?#\"'<>`\\]*+)")
_QUERY: Final = re.compile(
    r"[?&#;]([\w.\[\]%-]{1,64})=((?:\[REDACTED:[a-z]{1,8}\]|[^&#\s\"'<>`;\\,)\]}])++)"
)
_PARAMETERS: Final = frozenset(
    (
        *("key", "sig", "signature", "code", "auth", "sid", "session", "sessionid", "session_id"),
        *("ticket", "hmac", "hash", "pass", "x-amz-signature", "x-amz-credential", "assertion"),
        *("x-goog-signature", "x-goog-credential", "awsaccesskeyid", "googleaccessid", "st"),
        *("samlresponse", "samlrequest", "state", "nonce", "code_verifier", "skoid", "otp"),
    )
)
_NOT_SECRET: Final = re.compile(r"\d{1,3}|[a-z]{1,12}")
"""What a parameter such as `code` or `key` often is besides: `code=404`, `key=name`."""
_SEGMENT: Final = re.compile(r"[^/]++")
_CHUNK: Final = re.compile(r"[A-Za-z0-9]++")
_HEX: Final = re.compile(r"[0-9a-fA-F]++")
_CALLED: Final = re.compile(
    r"hooks?\.|webhook|api\.telegram|/webhooks?/|/services/|/bot\d|/hooks?/"
)


def urls(text: str) -> Iterator[Span]:
    """The credentials before the host and in the path of URLs; scheme, host and the rest of the
    path stay."""
    for found in _URL.finditer(text):
        yield from _user(found)
        yield from _path(found)


def may_have_query(text: str) -> bool:
    """Whether there is what a query needs."""
    return "=" in text and ("?" in text or "&" in text or "#" in text)


def queries(text: str) -> Iterator[Span]:
    """The credentials in the query or fragment of URLs, and of what is left of one."""
    if not may_have_query(text):
        return
    for found in _QUERY.finditer(text):
        name, value = found.groups()
        if name.lower() in _PARAMETERS:
            secret = _NOT_SECRET.fullmatch(value) is None
        else:
            secret = names_credential(name, value)
        if secret:
            yield Span(found.start(2), found.end(2), "secret")


def _user(found: re.Match[str]) -> Iterator[Span]:
    user, at, _ = found[1].rpartition("@")
    if at and user not in ("git", ""):
        yield Span(found.start(1), found.start(1) + len(user), "secret")


def _path(found: re.Match[str]) -> Iterator[Span]:
    path, at = found[2], found.start(2)
    if len(path) <= 12:
        return
    calls = _CALLED.search(found[0]) is not None
    for segment in _SEGMENT.finditer(path):
        if _is_credential(segment[0], calls):
            yield Span(at + segment.start(), at + segment.end(), "secret")


def _is_credential(segment: str, calls: bool) -> bool:
    """Whether a segment looks like a credential: a long run of letters and digits that is neither a
    hash, an id of hexadecimal digits nor words. Where the URL is one that lets others call in, all
    that is long is one."""
    if len(segment) < 12 or segment.startswith("[REDACTED"):
        return False
    if calls and len(segment) >= 24:
        return True
    return any(_is_random(chunk[0], calls) for chunk in _CHUNK.finditer(segment))


def _is_random(chunk: str, calls: bool) -> bool:
    if len(chunk) < 12 or (not calls and _HEX.fullmatch(chunk)):
        return False
    digits = sum(map(str.isdigit, chunk))
    if calls and len(chunk) >= 16:
        return True
    mixed = chunk != chunk.lower() and chunk != chunk.upper()
    return 2 <= digits < len(chunk) and (len(chunk) >= 16 or mixed)
