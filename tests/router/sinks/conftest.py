"""What the tests of all sinks share: coroutine tests, records, and a promise kept in time."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest

from hookbus.router.types import Headers, Record

Records = Callable[..., list[Record]]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a loop of its own; none may take longer than a minute."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def run() -> None:
        async with asyncio.timeout(60):
            await pyfuncitem.obj(**arguments)

    asyncio.run(run())
    return True


def event(number: int, **members: Any) -> dict[str, Any]:
    """A valid AHP event."""
    return {
        "id": f"evt-{number}",
        "source": "urn:example:agent:1",
        "harness": {"name": "demo-harness", "version": "1.0.0"},
        "type": "hook.failure",
        "time": "2026-08-24T08:51:14Z",
        "parentEventId": "evt-0",
        "failure": {
            "backendId": "com.example.policy",
            "reason": "deadline_exceeded",
            "policy": "fail-closed",
        },
        **members,
    }


def record(offset: int, value: bytes | None, headers: Headers = ()) -> Record:
    """A record of the first partition of a route's topic."""
    return Record(
        "hookbus.siem", 0, offset, 1_787_561_474_000, b"urn:example:agent:1", value, headers
    )


@pytest.fixture(scope="session")
def records() -> Records:
    """Makes `count` records of valid events, the first at offset `start`."""

    def make(count: int, start: int = 0, **members: Any) -> list[Record]:
        numbers = range(start, start + count)
        return [record(n, json.dumps(event(n, **members)).encode()) for n in numbers]

    return make


@pytest.fixture
def make_record() -> Callable[..., Record]:
    """Makes one record of any value."""
    return record


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Awaits a condition that other tasks or threads bring about, as long as the test may take."""

    async def wait(condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0.005)

    return wait


class Request:
    """One request as the server got it, byte for byte."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self.head = head
        self.body = body
        lines = head.decode("latin-1").split("\r\n")
        self.line = lines[0]
        fields = (text.partition(": ") for text in lines[1:] if text)
        self.headers = {name.lower(): value for name, _, value in fields}


Answer = Callable[["Backend", asyncio.StreamWriter], Awaitable[None]]


class Backend:
    """A server of raw sockets. It reads whole requests, notes them, and does to each connection
    whatever its answer does; after that the connection is closed, or kept if `keep` is set."""

    def __init__(self, answer: Answer, keep: bool) -> None:
        self.answer = answer
        self.keep = keep
        self.requests: list[Request] = []
        self.connections = 0
        self.closed = 0
        self.url = ""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its opening to its end by either side."""
        self.connections += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self.converse(reader, writer)
        finally:
            self.closed += 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests and answers."""
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            request = Request(head, b"")
            length = int(request.headers.get("content-length", "0"))
            request.body = await reader.readexactly(length)
            self.requests.append(request)
            await self.answer(self, writer)
            await writer.drain()
            if not self.keep:
                return


def always(data: bytes) -> Answer:
    """An answer of fixed bytes."""

    async def answer(_: Backend, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return answer


Serve = Callable[..., AbstractAsyncContextManager[Backend]]


@pytest.fixture(scope="session")
def serve() -> Serve:
    """Runs a Backend on a free port while the context is open: `serve(answer, keep=…, tls=…)`,
    where the answer is bytes or a coroutine function."""

    @asynccontextmanager
    async def run(
        answer: bytes | Answer, *, keep: bool = False, tls: Any = None
    ) -> AsyncIterator[Backend]:
        backend = Backend(always(answer) if isinstance(answer, bytes) else answer, keep)
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(backend.serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
        backend.port = server.sockets[0].getsockname()[1]
        backend.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{backend.port}/hooks"
        try:
            yield backend
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return run
