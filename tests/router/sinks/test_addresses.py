"""Where an HTTP sink may connect to."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbus.router.sinks.addresses import address_allowed, url_problem
from hookbus.router.sinks.resolver import AddressRefused, CheckedResolver, Lookup, system_lookup

PRIVATE = [
    "127.0.0.1",
    "10.0.0.5",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.170.2",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "240.0.0.1",
    "255.255.255.255",
    "0.1.2.3",
    "::1",
    "::ffff:169.254.169.254",
    "::ffff:10.0.0.5",
    "::10.0.0.5",
    "64:ff9b::a00:5",
    "2002:a00:5::1",
    "fd00::1",
    "fe80::1",
    "fec0::1",
    "2001:db8::1",
    "3fff::1",
]
NEVER = ["0.0.0.0", "::", "224.0.0.1", "ff0e::1", "::ffff:0.0.0.0"]  # noqa: S104 - not bound to
PUBLIC = ["93.184.216.34", "::ffff:93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"]


def answers(*addresses: str) -> Lookup:
    """A lookup that gives the addresses for any name."""

    async def lookup(host: str, port: int) -> list[str]:
        return list(addresses)

    return lookup


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses_need_permission(text: str) -> None:
    """In whatever IPv6 disguise they come (C94)."""
    assert not address_allowed(ip_address(text), allow_private=False)
    assert address_allowed(ip_address(text), allow_private=True)


@pytest.mark.parametrize("text", NEVER)
def test_what_can_be_no_backend_is_never_allowed(text: str) -> None:
    """Unspecified and multicast addresses are nobody's."""
    assert not address_allowed(ip_address(text), allow_private=True)


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_allowed(text: str) -> None:
    """Without any setting."""
    assert address_allowed(ip_address(text), allow_private=False)


async def test_a_name_is_resolved_to_what_was_checked() -> None:
    """The connection gets numeric addresses and the name only for TLS, and each resolution is one
    lookup, so that a name that changes its mind in between gains nothing."""
    lookups = iter([["93.184.216.34", "2606:2800:220:1::1"], ["10.0.0.5"]])

    async def rebinding(host: str, port: int) -> list[str]:
        return next(lookups)

    resolver = CheckedResolver(rebinding, allow_private=False)
    found = await resolver.resolve("backend.example", 443)
    assert [(one["hostname"], one["host"], one["port"], one["family"]) for one in found] == [
        ("backend.example", "93.184.216.34", 443, socket.AF_INET),
        ("backend.example", "2606:2800:220:1::1", 443, socket.AF_INET6),
    ]
    with pytest.raises(AddressRefused):
        await resolver.resolve("backend.example", 443)


@pytest.mark.parametrize("text", [*PRIVATE, *NEVER])
async def test_one_refused_address_refuses_the_name(text: str) -> None:
    """Also where the others are fine."""
    resolver = CheckedResolver(answers("93.184.216.34", text), allow_private=False)
    with pytest.raises(AddressRefused):
        await resolver.resolve("backend.example", 443)


async def test_a_name_without_addresses_is_an_error() -> None:
    """As an OSError, which is what a resolver's caller expects."""
    with pytest.raises(socket.gaierror):
        await CheckedResolver(answers(), allow_private=True).resolve("backend.example")


async def test_localhost_is_this_machine_and_nothing_else() -> None:
    """It needs no permission, and a hosts file that says otherwise is not believed."""
    here = CheckedResolver(answers("127.0.0.1", "::1"), allow_private=False)
    assert len(await here.resolve("localhost", 80)) == 2
    there = CheckedResolver(answers("10.0.0.5"), allow_private=True)
    for name in ("localhost", "LOCALHOST.", "hooks.localhost"):
        with pytest.raises(AddressRefused):
            await there.resolve(name, 80)


async def test_numbers_in_odd_spellings_are_judged_by_what_they_mean() -> None:
    """The operating system reads 0x7f000001 as 127.0.0.1."""
    resolver = CheckedResolver(system_lookup, allow_private=False)
    for text in ("0x7f000001", "2130706433", "127.1"):
        with pytest.raises(AddressRefused):
            await resolver.resolve(text, 80)


async def test_a_name_that_no_lookup_can_take_is_an_error() -> None:
    """A label of 64 letters raises no UnicodeError."""
    with pytest.raises(socket.gaierror):
        await system_lookup("é" * 64 + ".example", 80)


@pytest.mark.parametrize(
    "url",
    [
        "https://siem.example/hooks",
        "https://siem.example:8443/hooks?tenant=1",
        "https://93.184.216.34/",
        "https://[2606:2800:220:1::1]/",
        "http://localhost:8080/hooks",
        "http://127.0.0.1:8080",
        "http://[::1]:8080/",
        "http://hooks.localhost/",
    ],
)
def test_good_urls_have_no_problem(url: str) -> None:
    """https to the Internet, and plain http to this machine."""
    assert url_problem(url, allow_plain_http=False, allow_private=False) is None


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "not an https URL"),
        ("siem.example", "not an https URL"),
        ("ftp://siem.example", "not an https URL"),
        ("file:///etc/passwd", "not an https URL"),
        ("https://", "not a"),
        ("https:///hooks", "not a"),
        ("https://siem.example:0/", "not a"),
        ("https://siem.example:99999/", "not a URL"),
        ("https://[::1/", "not a URL"),
        ("https://user:secret@siem.example", "user-info"),
        ("https://@siem.example", "user-info"),
        ("https://siem.example/#top", "fragment"),
        ("https://siem.example/#", "fragment"),
        ("https://siem.example/\r\nX-Admin: 1", "characters"),
        ("https://siem.example\\@evil.example/", "characters"),
        ("https://bücher.example", "characters"),
        ("http://siem.example/", "plain http"),
        ("http://10.0.0.5/", "plain http"),
        ("http://localhost.example/", "plain http"),
        ("https://0x7f000001/", "unusual spelling"),
        ("https://2130706433/", "unusual spelling"),
        ("https://127.1/", "unusual spelling"),
        ("https://0177.0.0.1/", "unusual spelling"),
        ("https://127.0.0.1./", "unusual spelling"),
        ("https://10.0.0.5/", "may not be used"),
        ("https://[::ffff:10.0.0.5]/", "may not be used"),
        ("https://0.0.0.0/", "may not be used"),
    ],
)
def test_bad_urls_are_told_without_being_quoted(url: str, problem: str) -> None:
    """A URL may hold a secret, so the problem names its kind alone."""
    told = url_problem(url, allow_plain_http=False, allow_private=False)
    assert told is not None
    assert problem in told
    assert "secret@" not in told
    assert "siem" not in told


def test_what_is_allowed_is_allowed() -> None:
    """The two permissions lift the two refusals."""
    assert url_problem("http://siem.example/", allow_plain_http=True) is None
    assert url_problem("https://10.0.0.5/", allow_plain_http=False, allow_private=True) is None


@given(st.text() | st.text(st.characters(codec="ascii")).map("https://".__add__))
def test_no_text_breaks_the_judgement_of_urls(url: str) -> None:
    """It is a problem or None, whatever the text."""
    problem = url_problem(url, allow_plain_http=True, allow_private=False)
    assert problem is None or isinstance(problem, str)
