"""Resolves the names that an HTTP sink connects to.

That happens once a connection; every address is checked and the connection goes to a checked
address, with the original name for TLS, so a name that changes its mind between check and connect
gains nothing. If one address of a name is refused the name is (C94).
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from hookbus.router.sinks.addresses import Address, address_allowed, embedded, is_this_machine
from hookbus.router.sinks.threads import in_thread

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""A host name and a port to numeric addresses. Raises OSError."""


class AddressRefused(OSError):  # noqa: N818 - reads as what happened
    """A name resolves to an address that this sink may not connect to."""


async def system_lookup(host: str, port: int) -> list[str]:
    """The addresses of a name, as the operating system resolves it."""
    look = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        found = await in_thread(look)
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
