"""What the contract tests need of a bus: one log, and as many clients of it as they like."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hookbus.router.buses.kafka import KafkaBus
from hookbus.router.buses.kafka_settings import KafkaSettings, NewTopics
from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.errors import BusUnavailable
from hookbus.router.types import Bus, Output, Reader, Record, Settlement

WORKER = Path(__file__).with_name("worker.py")
PARTITIONS = 4
SOON = 60.0  # seconds; a deadline, never a pause


def connect(location: str, *, create: bool = True, session: float = 6.0) -> Bus:
    """A client of the log at `location`: a path of a file, or kafka://host:port, where a query
    `?exactly-once` asks for transactions. A member that is dead is replaced after a `session`, in
    seconds."""
    if location.startswith("kafka://"):
        bootstrap, _, delivery = location.removeprefix("kafka://").partition("?")
        return KafkaBus(
            KafkaSettings(
                bootstrap_servers=bootstrap,
                exactly_once=delivery == "exactly-once",
                session_timeout=session,
                request_timeout=8.0,
                close_timeout=3.0,
            ),
            create_topics=NewTopics(PARTITIONS, 1) if create else None,
        )
    return SqliteBus(location, partitions=PARTITIONS, create_topics=create, lease=1.0)


class Rig:
    """One log under test."""

    def __init__(self, name: str, location: str) -> None:
        self.name = name
        self.location = location

    @asynccontextmanager
    async def bus(self, *topics: str, create: bool = True) -> AsyncIterator[Bus]:
        """An open client, closed at the end."""
        bus = connect(self.location, create=create)
        try:
            await bus.open(topics)
            yield bus
        finally:
            await bus.close()

    @asynccontextmanager
    async def worker(self, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """A process of its own (worker.py), killed at the end if it still runs."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(WORKER), self.location, *arguments, stdout=asyncio.subprocess.PIPE
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def fresh(stem: str) -> str:
    """A name that nobody used before: brokers outlive a test."""
    return f"{stem}.{uuid.uuid4().hex[:8]}"


def numbered(topic: str, count: int, *, keys: int = 8, first: int = 0) -> list[Output]:
    """Outputs whose values say their number, spread over `keys` keys."""
    return [
        Output(topic, b"urn:example:%d" % (number % keys), json.dumps(number).encode())
        for number in range(first, first + count)
    ]


def numbers(records: Sequence[Record]) -> list[int]:
    return [int(record.value or b"") for record in records]


def done(records: Sequence[Record], topic: str | None = None) -> list[Settlement]:
    """Settlements that copy each record to `topic`."""
    return [
        Settlement(
            record, (Output(topic, record.key, record.value, record.headers),) if topic else ()
        )
        for record in records
    ]


async def collect(reader: Reader, count: int, *, limit: int = 100) -> list[Record]:
    """The next `count` records."""
    records: list[Record] = []
    deadline = time.monotonic() + SOON
    while len(records) < count:
        assert time.monotonic() < deadline, f"only {len(records)} of {count} records came"
        records += await reader.receive(min(limit, count - len(records)), 1.0)
    return records


async def scanned(bus: Bus, topic: str) -> list[Record]:
    return [record async for record in bus.scan(topic, follow=False)]


async def arrived(bus: Bus, topic: str, count: int) -> bool:
    """Whether a topic has the numbers up to `count`; not known while the bus is away."""
    try:
        return set(numbers(await scanned(bus, topic))) == set(range(count))
    except BusUnavailable:
        return False


async def until(
    condition: Callable[[], Any | Awaitable[Any]], seconds: float = SOON, what: str = "it"
) -> None:
    """Wait for a condition, which may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if isinstance(result, Awaitable):
            result = await result
        if result:
            return
        assert time.monotonic() < deadline, f"{what} did not come true in {seconds} s"
        await asyncio.sleep(0.02)
