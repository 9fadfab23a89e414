"""The HTTP sink against peers that mean harm, or are broken as if they did."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest

from hookbus.policies.faults import Fault
from hookbus.router.sinks.contract import Delivery
from hookbus.router.sinks.http import HttpSink
from hookbus.router.types import Record

Records = Callable[..., list[Record]]
Backend: TypeAlias = Any  # the class in conftest.py, which nothing can import
Serve = Callable[..., AbstractAsyncContextManager[Backend]]
Answer = Callable[..., Awaitable[None]]

FAILED = Delivery(0, Fault("route", "connection_failed"))
TIMEOUT = Delivery(0, Fault("route", "timeout"))

ACCEPTED = b"HTTP/1.1 202 Accepted\r\n"


async def attempt(url: str, records: list[Record], timeout: float) -> Delivery:  # noqa: ASYNC109 - passed on
    """One delivery. Without its time it would never end, as none of these backends does."""
    sink = HttpSink("siem", url)
    await sink.open()
    try:
        return await sink.deliver(records, timeout)
    finally:
        await sink.close()


async def reset(_: Backend, writer: asyncio.StreamWriter) -> None:
    """Hang up with a TCP reset."""
    writer.transport.abort()


async def reset_in_the_head(_: Backend, writer: asyncio.StreamWriter) -> None:
    """Hang up in the middle of the status line."""
    writer.write(b"HTTP/1.1 20")
    await writer.drain()
    writer.transport.abort()


async def stall(_: Backend, writer: asyncio.StreamWriter) -> None:
    """Say nothing."""
    await asyncio.Event().wait()


def endless(head: bytes, again: bytes, pause: float) -> Answer:
    """`head`, and then `again` and again as long as anybody reads."""

    async def answer(_: Backend, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.transport.is_closing():
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(pause)

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        reset,
        reset_in_the_head,
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
        b"HTTP/1.1 2 \r\n\r\n",
        b"HTTP/9.9 202 Accepted\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x16\x03\x01\x00\x00",
        b"HTTP/1.1 202 Accepted\r\nno colon\r\n\r\n",
        ACCEPTED + b"Transfer-Encoding: chunked\r\n\r\nbanana\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nnull",
        b"HTTP/1.1 202 Accepted\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 202 Accepted\r\nContent-Length: -1\r\n\r\n",
        ACCEPTED + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        endless(ACCEPTED, b"X-A: 1\r\n", 0),
        endless(ACCEPTED + b"X-A: ", b"x" * 1000, 0),
        endless(b"HTTP/1.1 202 ", b"x" * 1000, 0),
    ],
)
async def test_an_answer_that_is_not_http_is_a_failed_connection(
    serve: Serve, records: Records, answer: bytes | Answer
) -> None:
    """Broken off, malformed, contradictory or without end, it says nothing about the event."""
    async with serve(answer) as backend:
        assert await attempt(backend.url, records(1), 20.0) == FAILED


@pytest.mark.parametrize(
    "answer",
    [
        stall,
        endless(b"H", b"", 0.01),
        endless(ACCEPTED + b"X-A: ", b"x", 0.01),
        endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
        endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 0),
    ],
)
async def test_a_head_that_does_not_end_is_a_timeout(
    serve: Serve, records: Records, answer: Answer
) -> None:
    """A peer that stays busy holds us no longer than one that stalls."""
    async with serve(answer) as backend:
        assert await attempt(backend.url, records(1), 0.3) == TIMEOUT


async def test_a_peer_that_does_not_read_is_a_timeout(records: Records) -> None:
    """Sending is inside the deadline too."""
    connections = []

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await asyncio.Event().wait()

    server = await asyncio.start_server(ignore, "127.0.0.1", 0, limit=1024)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    assert await attempt(url, records(1, native="x" * 30_000_000), 0.5) == TIMEOUT
    server.close()
    for connection in connections:
        connection.close()


@pytest.mark.parametrize(
    "answer",
    [
        ACCEPTED + b"Content-Length: 4\r\n\r\nnull",
        ACCEPTED + b"Content-Length: 4000\r\n\r\nnull",
        ACCEPTED + b"Content-Encoding: gzip\r\nContent-Length: 6\r\n\r\nbanana",
        ACCEPTED + b"Content-Type: \xff\xfe\r\n\r\n",
        endless(ACCEPTED + b"\r\n", b"x", 0.01),
        endless(ACCEPTED + b"Content-Length: 9999999\r\n\r\n", b"x", 0.01),
        endless(ACCEPTED + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 0.01),
    ],
)
async def test_a_body_changes_nothing(
    serve: Serve, records: Records, answer: bytes | Answer
) -> None:
    """The status has accepted the event; a body that lies, breaks off or drips is dropped."""
    async with serve(answer) as backend:
        assert await attempt(backend.url, records(1), 10.0) == Delivery(1)


async def test_a_peer_that_changes_the_protocol_is_not_followed(
    serve: Serve, records: Records
) -> None:
    """Nobody asked for an upgrade."""
    answer = b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    async with serve(endless(answer, b"x" * 1000, 0)) as backend:
        delivery = await attempt(backend.url, records(1), 10.0)
    assert delivery == Delivery(0, Fault("route", "unexpected_status"))


async def test_a_connection_with_an_unread_body_is_not_used_again(
    serve: Serve, records: Records
) -> None:
    """The rest of one answer must never be taken for the next."""
    body = b"HTTP/1.1 500 Ha\r\n\r\n" * 10_000
    answer = ACCEPTED + b"Content-Length: %d\r\n\r\n" % len(body) + body
    async with serve(answer, keep=True) as backend:
        assert await attempt(backend.url, records(3), 10.0) == Delivery(3)
    assert backend.connections == 3


async def test_a_compressed_bomb_is_not_inflated(serve: Serve, records: Records) -> None:
    """Of ten gibibytes in ten mebibytes no more than the first few blocks are taken (C96)."""
    bomb = gzip.compress(bytes(64 << 20)) * 160
    sent = 0

    async def answer(_: Backend, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(ACCEPTED + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb))
        for start in range(0, len(bomb), 65536):
            writer.write(bomb[start : start + 65536])
            await writer.drain()
            sent += 65536

    async with serve(answer) as backend:
        tracemalloc.start()
        try:
            assert await attempt(backend.url, records(1), 10.0) == Delivery(1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert sent < len(bomb)
    assert peak < 4 << 20


async def test_an_endless_body_costs_no_memory(serve: Serve, records: Records) -> None:
    """Read to its limit, then closed."""
    async with serve(endless(ACCEPTED + b"\r\n", b"x" * 65536, 0)) as backend:
        tracemalloc.start()
        try:
            assert await attempt(backend.url, records(1), 10.0) == Delivery(1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 4 << 20
