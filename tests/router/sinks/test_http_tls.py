"""The HTTP sink over TLS, with real certificates."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from hookbus.policies.faults import Fault
from hookbus.router.errors import StartupError
from hookbus.router.sinks.contract import Delivery
from hookbus.router.sinks.http import HttpSink
from hookbus.router.types import Record
from tests.certificates import Authority
from tests.router.sinks.attempts import AMPLE

Records = Callable[..., list[Record]]
Serve = Callable[..., AbstractAsyncContextManager[Any]]

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
TLS_FAILED = Delivery(0, Fault("route", "tls_failed"))
HUNG_UP = Delivery(0, Fault("route", "connection_failed"))  # by a server that doesn't say why


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Made by the openssl command."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command here")
    return Authority(tmp_path_factory.mktemp("authority"))


async def attempt(
    port: int, records: list[Record], host: str = "backend.example", **options: Any
) -> Delivery:
    """One delivery to a name that the lookup takes to this machine."""

    async def lookup(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    url = f"https://{host}:{port}/hooks"
    sink = HttpSink("siem", url, allow_private=True, lookup=lookup, **options)
    await sink.open()
    try:
        return await sink.deliver(records, AMPLE)
    finally:
        await sink.close()


async def test_the_name_is_that_of_the_url_though_the_address_is_pinned(
    serve: Serve, records: Records, authority: Authority
) -> None:
    """The server name that TLS asks for and the certificate that is checked are the host's."""
    names = []
    context = authority.server("backend.example")
    context.sni_callback = lambda _, name, __: names.append(name)
    async with serve(NO_CONTENT, keep=True, tls=context) as backend:
        assert await attempt(backend.port, records(3), ca_file=authority.file) == Delivery(3)
    assert names == ["backend.example"]


async def test_an_authority_that_nobody_trusts_is_a_route_fault(
    serve: Serve, records: Records, authority: Authority
) -> None:
    """Nothing is sent to it."""
    async with serve(NO_CONTENT, tls=authority.server("backend.example")) as backend:
        assert await attempt(backend.port, records(1)) == TLS_FAILED
    assert backend.requests == []


async def test_a_certificate_for_another_name_is_a_route_fault(
    serve: Serve, records: Records, authority: Authority
) -> None:
    """Also for a trusted authority."""
    async with serve(NO_CONTENT, tls=authority.server("other.example")) as backend:
        assert await attempt(backend.port, records(1), ca_file=authority.file) == TLS_FAILED
    assert backend.requests == []


async def test_an_old_protocol_is_a_route_fault(
    serve: Serve, records: Records, authority: Authority
) -> None:
    """TLS 1.2 is the least."""
    context = authority.server("backend.example")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with serve(NO_CONTENT, tls=context) as backend:
        delivery = await attempt(backend.port, records(1), ca_file=authority.file)
    assert delivery in (TLS_FAILED, HUNG_UP)
    assert backend.requests == []


async def test_a_backend_without_tls_is_a_route_fault(records: Records) -> None:
    """It answers the handshake with something else."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await attempt(port, records(1)) == TLS_FAILED


async def test_a_client_certificate_is_shown(
    serve: Serve, records: Records, authority: Authority
) -> None:
    """A backend that asks for one gets it; without it the connection is refused."""
    cert_file, key_file = authority.issue("hookbus")
    context = authority.server("backend.example", clients=True)
    async with serve(NO_CONTENT, keep=True, tls=context) as backend:
        delivery = await attempt(
            backend.port, records(2), ca_file=authority.file, cert_file=cert_file, key_file=key_file
        )
        assert delivery == Delivery(2)
        without = await attempt(backend.port, records(1), ca_file=authority.file)
    assert without in (TLS_FAILED, HUNG_UP)
    assert len(backend.requests) == 2


async def test_a_key_that_does_not_fit_stops_the_start(authority: Authority) -> None:
    """It is a mistake in the configuration and no state of a backend."""
    cert_file, _ = authority.issue("hookbus")
    _, key_file = authority.issue("other")
    sink = HttpSink("siem", "https://siem.example/", cert_file=cert_file, key_file=key_file)
    with pytest.raises(StartupError):
        await sink.open()


async def test_a_key_with_a_passphrase_stops_the_start(
    authority: Authority, capfd: pytest.CaptureFixture[str]
) -> None:
    """And nobody is asked for it: a service has no terminal."""
    cert_file, key_file = authority.issue("hookbus")
    locked = str(authority.folder / "locked.key")
    command = ["openssl", "pkey", "-in", key_file, "-aes256", "-passout", "pass:x", "-out", locked]
    await asyncio.to_thread(subprocess.run, command, check=True)
    sink = HttpSink("siem", "https://siem.example/", cert_file=cert_file, key_file=locked)
    with pytest.raises(StartupError):
        await sink.open()
    assert "pass phrase" not in capfd.readouterr().err
