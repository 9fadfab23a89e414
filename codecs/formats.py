"""The two formats that AHP enforces: `date-time` (RFC 3339) and `uri` (RFC 3986, with a scheme).

The verdicts are those of the official validator (jsonschema with rfc3339-validator and rfc3987),
with two deviations, where it departs from the RFCs:

- a trailing newline is refused (Python's `$` lets it through);
- a leap second is accepted on any date, if it is 23:59:60 in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_TIME = (
    r"[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?"
    r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
)
_ORDINARY_DAY = re.compile(
    rf"[1-9]\d{{3}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8]){_TIME}", re.ASCII
)
"""Of a day that every month has: tried first, because it decides most."""
_DATE_TIME = re.compile(rf"(\d{{4}})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]){_TIME}", re.ASCII)
_LEAP_SECOND = re.compile(r"[Tt](\d\d):(\d\d):60(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)
_DAY_MINUTES = 24 * 60
_LONGEST_REMEMBERED = 512
_LONG_MONTHS = frozenset({"01", "03", "05", "07", "08", "10", "12"})


def is_date_time(text: str) -> bool:
    """Whether `text` is an RFC 3339 date-time, with an offset, of a day that exists."""
    if _ORDINARY_DAY.fullmatch(text):
        return True
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return _is_leap_second(text)
    year, month, day = match.groups()
    if year == "0000":
        return False
    return day < "29" or _exists(int(year), month, day)


def _exists(year: int, month: str, day: str) -> bool:
    if month == "02":
        return day == "29" and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return day < "31" or month in _LONG_MONTHS


def _is_leap_second(text: str) -> bool:
    match = _LEAP_SECOND.fullmatch(text, 10)
    if match is None or not is_date_time(f"{text[:16]}:59{text[19:]}"):
        return False
    hour, minute, sign, offset_hour, offset_minute = match.groups()
    local = int(hour) * 60 + int(minute)
    offset = int(offset_hour) * 60 + int(offset_minute) if sign else 0
    return (local + (offset if sign == "-" else -offset)) % _DAY_MINUTES == _DAY_MINUTES - 1


def _uri_pattern() -> re.Pattern[str]:
    """RFC 3986 `URI`, appendix A. Every repetition is of one character or an escape, and possessive
    where something follows that its characters can't start, so that matching is linear.

    Userinfo is tried first, up to the `@`; a host made of the same characters is tried after.
    """
    char = r"A-Za-z0-9._~!$&'()*+,;=\-"
    escape = r"%[0-9A-Fa-f]{2}"
    userinfo = rf"(?:[{char}:]|{escape})*+@"
    segment_chars = rf"(?:[{char}:@]|{escape})"
    path_chars = rf"(?:[{char}:@/]|{escape})*+"
    query_chars = rf"(?:[{char}:@/?]|{escape})*+"
    octet = r"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
    v4 = rf"(?:{octet}\.){{3}}{octet}"
    h = r"[0-9A-Fa-f]{1,4}"
    last = rf"(?:{h}:{h}|{v4})"
    v6 = "|".join(
        [
            rf"(?:{h}:){{6}}{last}",
            rf"::(?:{h}:){{5}}{last}",
            *(rf"(?:(?:{h}:){{0,{n}}}{h})?::(?:{h}:){{{4 - n}}}{last}" for n in range(5)),
            rf"(?:(?:{h}:){{0,5}}{h})?::{h}",
            rf"(?:(?:{h}:){{0,6}}{h})?::",
        ]
    )
    future = rf"v[0-9A-Fa-f]+\.[{char}:]+"
    host = rf"(?:\[(?:{v6}|{future})\]|(?:[{char}]|{escape})*+)"
    return re.compile(
        rf"[A-Za-z][A-Za-z0-9+.-]*+:"
        rf"(?://(?:{userinfo})?{host}(?::[0-9]*+)?(?:/{path_chars})?"
        rf"|/(?:{segment_chars}{path_chars})?"
        rf"|{segment_chars}{path_chars}"
        rf"|)"
        rf"(?:\?{query_chars})?(?:#{query_chars})?"
    )


_URI = _uri_pattern()


def is_uri(text: str) -> bool:
    """Whether `text` is a URI with a scheme: ASCII, no space, percent signs only in escapes."""
    return _URI.fullmatch(text) is not None


def remembering(check: Callable[[str], bool], size: int = 1024) -> Callable[[str], bool]:
    """`check` with the last `size` verdicts at hand: sources repeat in a stream of events. Long
    texts are checked each time, so that the memory held is bounded in bytes too."""
    recall = lru_cache(size)(check)

    def remembered(text: str) -> bool:
        return recall(text) if len(text) <= _LONGEST_REMEMBERED else check(text)

    return remembered
