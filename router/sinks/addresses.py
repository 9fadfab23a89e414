"""Which URLs an HTTP sink may have, and which addresses it may connect to."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from yarl import URL

Address = IPv4Address | IPv6Address

_PRINTABLE = re.compile(r"[\x21-\x5b\x5d-\x7e]*")  # no backslash: parsers disagree about it
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")


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
