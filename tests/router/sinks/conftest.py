"""What the tests of all sinks share: coroutine tests, records, and a promise kept in time."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
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


@pytest.fixture
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
    """Awaits a condition that other tasks or threads bring about, for ten seconds at most."""

    async def wait(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - brought about by threads and processes too
                await asyncio.sleep(0.005)

    return wait
