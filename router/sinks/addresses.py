"""Where an HTTP sink may connect to.

Names are resolved once a connection; every address is checked and the connection goes to a checked
address, with the original name for TLS, so a name that changes its mind between check and connect
gains nothing. If one address of a name is refused the name is (C94).
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

Address = IPv4Address | IPv6Address
Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""A host name and a port to numeric addresses. Raises OSError."""

_PRINTABLE = re.compile(r"[\x21-\x5b\x5d-\x7e]*")  # no backslash: parsers disagree about it
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")


class AddressRefused(OSError):  # noqa: N818 - reads as what happened
    """A name resolves to an address that this sink may not connect to."""


def url_problem(url: str, *, allow_plain_http: bool, allow_private: bool = True) -> str | None:
    """Why `url` can't be that of a backend, without quoting it; None if it can.

    https, or http to this machine unless `allow_plain_http`; no user-info, no fragment. Without
    `allow_private` the host must not be a private address, written in whatever way.
    """
    if not _PRINTABLE.fullmatch(url):
        return "has characters that belong percent-encoded, or a name that belongs in xn-- form"
    try:
        parsed = URL(url)
        host = parsed.host or ""
    except ValueError:
        return "is not a URL"
    if parsed.scheme not in ("https", "http") or not host or parsed.port == 0:
        return "is not an https URL with a host"
    if "@" in re.split("[/?#]", url.partition("://")[2])[0]:
        return "has user-info; use bearer or headers, which are kept secret"
    if "#" in url:
        return "has a fragment"
    if parsed.scheme == "http" and not (allow_plain_http or is_this_machine(host)):
        return "is plain http to another machine; use https, or set allow_plain_http"
    return _host_problem(host, allow_private)


def _host_problem(host: str, allow_private: bool) -> str | None:
    address = literal(host)
    if address is None:
        last = host.rstrip(".").rpartition(".")[2]
        return "has an address in an unusual spelling" if _NUMBER.fullmatch(last) else None
    if not (address_allowed(address, allow_private) or embedded(address).is_loopback):
        return "has an address that may not be used; see allow_private"
    return None


def is_this_machine(host: str) -> bool:
    """Whether a host is written so that it can only mean this machine."""
    address = literal(host)
    if address is not None:
        return embedded(address).is_loopback
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost")


def literal(host: str) -> Address | None:
    """The address that a host is in the usual spelling; None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for (mapped, compatible, 6to4, Teredo, NAT64),
    or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    low = int(address) & 0xFFFFFFFF
    if address in _NAT64 or (address in _COMPATIBLE and low > 1):
        return IPv4Address(low)
    return address


def address_allowed(address: Address, allow_private: bool) -> bool:
    """Whether an address is one of the public Internet, or anything that can be a backend at all
    where private ones are allowed."""
    real = embedded(address)
    if real.is_multicast or real.is_unspecified:
        return False
    if allow_private:
        return True
    site_local = isinstance(real, IPv6Address) and (real.is_site_local or _is_documentation(real))
    return real.is_global and not real.is_reserved and not site_local


def _is_documentation(address: IPv6Address) -> bool:
    return address in IPv6Network("3fff::/20")  # RFC 9637, younger than the ipaddress module


async def system_lookup(host: str, port: int) -> list[str]:
    """The addresses of a name, as the operating system resolves it."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that IDNA can't encode
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from error
    return [str(info[4][0]) for info in found]


class CheckedResolver(AbstractResolver):
    """Resolves names to addresses that may be connected to, or raises AddressRefused."""

    def __init__(self, lookup: Lookup, *, allow_private: bool) -> None:
        self._lookup = lookup
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses to connect to. Raises OSError if there are none, or any is refused."""
        addresses = [ip_address(text) for text in await self._lookup(host, port)]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        if not all(self._allowed(host, address) for address in addresses):
            raise AddressRefused(host)
        return [_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing is held."""

    def _allowed(self, host: str, address: Address) -> bool:
        if is_this_machine(host):  # which is also why plain http may be spoken to it
            return embedded(address).is_loopback
        return address_allowed(address, self._allow_private)


def _result(host: str, port: int, address: Address) -> ResolveResult:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(
        hostname=host, host=str(address), port=port, family=family, proto=0, flags=flags
    )
