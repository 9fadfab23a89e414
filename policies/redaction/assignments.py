"""Credentials that are written after their name: `password=…`, `"api_key": "…"`, `--token …`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from hookbus.policies.redaction.names import Rule, rule_of
from hookbus.policies.redaction.quoted import bracketed, extent
from hookbus.policies.redaction.spans import Span

STARTS: Final = (
    *("pass", "pwd", "secret", "token", "cred", "key", "authorization", "cookie", "jwt"),
    *("mnemonic", "cvv", "cvc", "otp", "pin", "phrase", "connection", "sid"),
)
"""How what names a credential starts, in lower case."""

_NAME: Final = (
    r"(?:passw(?:or)?(?:d|t)s?|pass[ _-]?(?:phrase|code|word)s?|pwd|secrets?|tokens?"
    r"|credentials?|creds?|authorization|cookies?|jwt|mnemonic|cvv|cvc|otp|pin(?:code)?|pass(?=\b|_)"
    r"|keys?|phrase|connection[ _-]?string|sid(?=\b|_))"
    r"([\w.-]{0,40}+)"  # the rest of the name
    r"([\\\"'`\])]{0,16}+)"  # what closes it
    r"\s{0,16}+"
    r"(=>|:=|={1,3}|:(?![:/])|>|(?<=\s)(?=[^\s=:]))"
)
_NAMED: Final = re.compile(_NAME, re.IGNORECASE)
_NAMED_IN_ASCII: Final = re.compile(_NAME)
"""On a text in lower case the same as `_NAMED`, and quicker."""
_INSIDE: Final = ("_", ".", "-")
_BEFORE: Final = re.compile(r"[\w.-]{0,64}+")
"""What a name starts with, read backwards."""
_KINDS: Final = (
    *("api ", "access ", "private ", "secret ", "signing ", "auth ", "encryption ", "ssh "),
    *("master ", "account ", "license ", "shared ", "seed ", "recovery "),
)
_KIND: Final = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(_KINDS)})\Z", re.IGNORECASE)
_LONGEST: Final = 64
"""The most that is read before the start of a name, in characters."""
_LONGEST_KIND: Final = max(map(len, _KINDS))
_GAP: Final = re.compile(r"[^\S\r\n]{0,64}+(?:\r?\n[^\S\r\n]{0,64}+)?(?:-[^\S\r\n]{1,4})?")
_LINE: Final = re.compile(r"[^\r\n\"'`]*+")
_KEY: Final = re.compile(r"[\w.-]{1,64}[\"']?(?::(?=\s|\Z)|=(?!=))|\|?\Z")
_ONE_TOKEN: Final = re.compile(
    r"(?:bearer|basic|token|api-?key|negotiate)(?:[ \t]++|[ \t]*+\r?\n[ \t]++)"
    r"(?:\[REDACTED:[a-z]{1,8}\]|[^\s\"'`,;])++",
    re.IGNORECASE,
)
_DIGEST: Final = re.compile(r"digest[ \t]++(?:\w{1,32}=(?:\"[^\"\n]*+\"|[^\s,]*+)(?:,[ \t]*+)?)++",
                            re.IGNORECASE)  # fmt: skip
_HEADERS: Final = ("authorization", "cookie", "cookies")

_NOTHING: Final = frozenset(
    (
        *("null", "none", "nil", "undefined", "true", "false", "yes", "no", "required", "optional"),
        *("str", "string", "int", "integer", "number", "bool", "boolean", "bytes", "any", "text"),
        *("object", "varchar", "secretstr", "withheld", "[withheld]", "missing", "invalid", "..."),
    )
)
"""Values that say nothing: of types, of JSON, of forms."""
_REFERENCE: Final = re.compile(
    r"\$\{[A-Za-z_]\w*+\}|\$[A-Z_][A-Z0-9_]*+|%[A-Z_]++%|\*{3,}+|\$?\{\{.*+"
    r"|(?:Optional|Union|Annotated|Literal|Final|list|List|dict|Dict)\[[\w\[\], .|]*+"
)
"""Values that stand for others: variables, templates, masks, and types in code."""
_WORDS: Final = re.compile(r"[A-Z]?[a-z]*+[.,:;!?]*+")
_USER: Final = re.compile(
    r"(?<![\w-])(?:-u|--user|--proxy-user)(?:[ \t]{1,4}|=)([\"']?)([^\s\"':]{1,128}:[^\s\"']++)"
)


def assignments(text: str, lower: str, places: Iterable[int]) -> Iterator[Span]:
    """The values of credential names, by `=`, `:`, `=>`, an XML element or a command-line flag.

    A quoted value goes whole, a bare one up to what ends it. `places` is where one of the `STARTS`
    is in `lower`, the text in lower case, in order.
    """
    if not may_assign(text):
        return
    at = 0
    ascii_only = text.isascii()
    for place in places:
        if place < at:
            continue
        found = _NAMED_IN_ASCII.match(lower, place) if ascii_only else _NAMED.match(text, place)
        if found is not None:
            at = found.end()
            span = _value(text, lower, found)
            if span is not None:
                at = max(at, span.end)
                yield span


def may_assign(text: str) -> bool:
    """Whether there is something in the text that joins a value to its name."""
    return "=" in text or ":" in text or "-" in text or ">" in text


def users(text: str) -> Iterator[Span]:
    """The user and password that a command-line flag gives."""
    for user in _USER.finditer(text):
        yield Span(user.start(2), user.end(2), "secret")


def _value(text: str, lower: str, found: re.Match[str]) -> Span | None:
    start, end, by = _name_start(text, lower, found.start()), found.end(1), found[3]
    if by == ">" and not text[max(0, start - 1) : start].endswith(("<", ":")):
        return None
    if by == "" and not _is_flag(text, start, found):
        return None
    rule = rule_of(text[start:end].replace(" ", "_"))
    if rule is None or not rule.takes(""):
        return None
    gap = _GAP.match(text, found.end())
    at = gap.end() if gap is not None else found.end()
    if by != "" and lower.endswith(_HEADERS, start, end):
        span = _header(text, at)
        if span is not None:
            return span
    if text[at : at + 1] in ("{", "["):
        span = _bracketed(text, at, named='"' in found[2] or "'" in found[2])
        if span is not None:
            return span
    value = extent(text, at)
    if value is None or value.end == value.start:
        return None
    content = text[value.start : value.end]
    if not value.quoted and "\n" in text[found.end() : at] and _KEY.match(text, at):
        return None  # a name on the next line
    if _says_nothing(rule, content, flag=by == "", quoted=value.quoted):
        return None
    return Span(value.start, value.end, "secret")


def _name_start(text: str, lower: str, at: int) -> int:
    """Where the name starts that goes on at `at`, with the word before it that belongs to it."""
    first = max(0, at - _LONGEST)
    start = at
    previous = text[at - 1 : at]
    if previous.isalnum() or previous in _INSIDE:
        before = _BEFORE.match(text[first:at][::-1])
        start = at - before.end() if before is not None else at
    if lower.endswith(_KINDS, first, start) or not lower.isascii():
        kind = _KIND.search(text, max(first, start - _LONGEST_KIND), start)
        return start if kind is None else kind.start()
    return start


def _bracketed(text: str, at: int, *, named: bool) -> Span | None:
    """An object or array as the value of a quoted name; of a bare one, a list or a JSON object
    within its line."""
    if text.startswith("[REDACTED:", at):
        return None
    if named:
        return Span(at, bracketed(text, at), "secret")
    if text[at] == "{" and text[at + 1 : at + 2] != '"':
        return None
    end = bracketed(text, at)
    line = text.find("\n", at, end)
    return Span(at, line if line >= 0 else end, "secret")


def _is_flag(text: str, start: int, found: re.Match[str]) -> bool:
    """Whether a space after a name is that of `--name value`."""
    return found[2] == "" and start < found.start(1) and text[start] == "-"


def _header(text: str, at: int) -> Span | None:
    """The rest of an Authorization or Cookie header, with its scheme; a quoted one is a value like
    any other."""
    if text[at : at + 1] in ("\\", '"', "'", "`") or text.startswith("[REDACTED:", at):
        return None
    known = _ONE_TOKEN.match(text, at) or _DIGEST.match(text, at) or _LINE.match(text, at)
    if known is None:
        return None
    end = at + len(known[0].rstrip(" \t,;\\})]"))
    says = text[at:end].strip().lower()
    return None if not says or says in _NOTHING else Span(at, end, "secret")


def _says_nothing(rule: Rule, value: str, *, flag: bool, quoted: bool) -> bool:
    plain = value.strip().rstrip(".,;:!?)").lower()
    if plain in _NOTHING or not plain or _REFERENCE.fullmatch(value.strip()):
        return True
    if flag and not quoted and (value.startswith("-") or _WORDS.fullmatch(value)):
        return True
    return not rule.takes(plain)
