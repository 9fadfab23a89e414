"""Dates and URIs: the official verdict, and the two deviations from it."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import FormatChecker

from hookbus.codecs.formats import is_date_time, is_uri, remembering

_CHECKER = FormatChecker()


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("2026-08-24T08:51:14Z", True),
        ("2026-08-24t08:51:14.123456789z", True),
        ("2026-08-24T08:51:14-23:59", True),
        ("2024-02-29T00:00:00Z", True),
        ("2000-02-29T00:00:00Z", True),
        ("1900-02-29T00:00:00Z", False),
        ("2026-02-30T00:00:00Z", False),
        ("2026-04-31T00:00:00Z", False),
        ("0000-01-01T00:00:00Z", False),
        ("2026-08-24T08:51:14+0100", False),
        ("2026-08-24T08:51:14", False),
        ("2026-08-24 08:51:14Z", False),
        ("20260824T085114Z", False),
        ("2026-08-24T24:00:00Z", False),
        ("2026-08-24T08:51:14Z\n", False),
        ("\u0662026-08-24T08:51:14Z", False),
        ("", False),
    ],
)
def test_dates(text: str, valid: bool) -> None:
    """A date-time is RFC 3339's, of a day that exists, with an offset and nothing after it."""
    assert is_date_time(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("2016-12-31T23:59:60Z", True),
        ("2016-12-31T23:59:60.5z", True),
        ("2016-12-31T15:59:60-08:00", True),
        ("2017-01-01T05:29:60+05:30", True),
        ("2026-08-24T23:59:60Z", True),
        ("2016-12-31T23:58:60Z", False),
        ("2016-12-31T00:00:60Z", False),
        ("2016-12-31T23:59:60+01:00", False),
        ("2016-12-31T23:59:61Z", False),
        ("2016-12-31T23:59:60", False),
        ("2026-02-30T23:59:60Z", False),
        ("2016-12-31T24:59:60+01:00", False),
        ("2016-12-31T23:59:60Z\n", False),
    ],
)
def test_leap_seconds(text: str, valid: bool) -> None:
    """Second 60 exists only as 23:59:60 in UTC; the official validator knows none at all."""
    assert is_date_time(text) is valid
    assert not _CHECKER.conforms(text.strip(), "date-time")


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("urn:example:agent:1", True),
        ("a:", True),
        ("http://", True),
        ("HTTPS://user:pass@example.com:443/a/b;c?d=e#f", True),
        ("http://[::1]:80/", True),
        ("http://[::ffff:192.0.2.1]", True),
        ("http://[v1.a:b]", True),
        ("x:%41", True),
        ("relative/path", False),
        (":x", False),
        ("1a:b", False),
        ("http://[::1", False),
        ("http://[1::2::3]", False),
        ("http://a:b:c", False),
        ("x:%4", False),
        ("x:a b", False),
        ("x:\u00e9", False),
        ("x:a\\b", False),
        ("urn:example\n", False),
        ("", False),
    ],
)
def test_uris(text: str, valid: bool) -> None:
    """A URI is RFC 3986's, with a scheme, in ASCII."""
    assert is_uri(text) is valid


_DATES = st.builds(
    "{}-{}-{}{}{}:{}:{}{}{}".format,
    st.sampled_from(["2026", "2024", "1900", "2000", "0000", "202", "20260"]),
    st.integers(0, 13).map("{:02}".format),
    st.integers(0, 32).map("{:02}".format),
    st.sampled_from("Tt _"),
    st.integers(0, 24).map("{:02}".format),
    st.sampled_from(["00", "59", "60", "5"]),
    st.sampled_from(["00", "59", "61", "5"]),
    st.sampled_from(["", ".", ".1", ".000000000001", ",5"]),
    st.sampled_from(["Z", "z", "", "+00:00", "-23:59", "+24:00", "+1:00", "+0100", "-00:60"]),
)
_URI_PIECES = ["http:", "urn:", "x", ":", "/", "//", "?", "#", "@", "%41", "%4", "[", "]", "::"]
_URI_PIECES += ["1:", "ffff", "1.2.3.4", "256.1.1.1", "v1.", ".", "-", "+", "~", "!", "$", " ", '"']
_URI_PIECES += ["\u00e9", "^", "|", "\\", "{", "0", "[::1]", "http://[", "12345:", "\x00", "_"]
_URIS = st.lists(st.sampled_from(_URI_PIECES), max_size=12).map("".join)


@settings(deadline=None)
@given(text=_DATES | st.text(alphabet="0123456789-T:Z+.", max_size=30) | st.text(max_size=30))
@example("2026-08-24T08:51:14Z")
def test_dates_get_the_official_verdict(text: str) -> None:
    """Apart from leap seconds and a trailing newline, the verdict is the official one."""
    if not text.endswith("\n") and ":60" not in text:
        assert is_date_time(text) == _CHECKER.conforms(text, "date-time")


@settings(deadline=None)
@given(text=_URIS | st.text(max_size=20).map("x:{}".format) | st.text(max_size=20))
@example("http://[1:2:3:4:5:6:7::]")
@example("http://[1:2:3:4:5:6:7:8:9]")
def test_uris_get_the_official_verdict(text: str) -> None:
    """Apart from a trailing newline, the verdict is the official one."""
    if not text.endswith("\n"):
        assert is_uri(text) == _CHECKER.conforms(text, "uri")


@pytest.mark.parametrize(
    "text",
    [
        "http://" + "a" * 1_000_000 + " ",
        "http://" + "a:" * 500_000 + " ",
        "http://" + "%41" * 300_000 + "@@",
        "http://[" + "1:" * 500_000,
        "http://" + "1." * 500_000 + " ",
        "x:" + "/" * 1_000_000 + " ",
        "x:?" + "?" * 1_000_000 + " ",
        "a" * 1_000_000,
        "2026-08-24T08:51:14." + "1" * 1_000_000,
    ],
    ids=range(9),
)
def test_long_texts_take_linear_time(text: str) -> None:
    """A megabyte that nearly is a URI or a date is refused in well under a second."""
    start = time.process_time()
    assert not is_uri(text)
    assert not is_date_time(text)
    assert time.process_time() - start < 1


def test_remembered_verdicts_are_the_same() -> None:
    """A remembering check says the same, again and again, of short texts and of long ones."""
    check = remembering(is_uri, 2)
    texts = ["urn:a", "b", "urn:" + "c" * 10_000, "d" * 10_000] * 3
    assert [check(text) for text in texts] == [True, False, True, False] * 3


def test_long_texts_are_not_remembered() -> None:
    """What is remembered is bounded in bytes: a stream of huge sources fills no memory."""
    seen: list[str] = []

    def counted(text: str) -> bool:
        seen.append(text)
        return True

    check = remembering(counted)
    for text in ["short", "long" * 1000] * 3:
        assert check(text)
    assert [len(text) for text in seen] == [5, 4000, 4000, 4000]
