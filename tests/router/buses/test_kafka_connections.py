"""What nobody uses any more is gone, however a client ends: its connections and its tasks."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hookbus.router.buses.kafka import KafkaBus
from hookbus.router.buses.kafka_transaction import fencing_producer
from hookbus.router.errors import BusUnavailable
from tests.brokers import Broker
from tests.router.buses.rig import SOON, collect, done, fresh, numbered
from tests.router.buses.test_kafka import opened, settings

pytestmark = pytest.mark.kafka

Start = Callable[[str], Coroutine[Any, Any, object]]


async def _open(bootstrap: str) -> None:
    await KafkaBus(settings(bootstrap)).open([fresh("in")])


async def _read(bootstrap: str) -> None:
    await KafkaBus(settings(bootstrap, session_timeout=0.1)).reader(fresh("g"), [fresh("in")])


async def _scan(bootstrap: str) -> None:
    async for _ in KafkaBus(settings(bootstrap)).scan(fresh("in"), follow=False):
        pass


async def _transact(bootstrap: str) -> None:
    await fencing_producer(settings(bootstrap, exactly_once=True), fresh("tx"))


class StruckDumb:
    """A peer that answers the first request of a connection as the broker does, and no other."""

    def __init__(self, broker: Broker) -> None:
        self._host, self._port = broker.bootstrap.split(":")
        self.address = ""
        self.open: set[asyncio.Task[None]] = set()
        """What serves the connections that the other side hasn't closed."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._accept, "127.0.0.1", 0) as server:
            self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self.open.add(task)
        task.add_done_callback(self.open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection(self._host, self._port)
        try:
            for source, sink in ((reader, requests), (answers, writer)):
                size = await source.readexactly(4)
                sink.write(size + await source.readexactly(int.from_bytes(size)))
            while await reader.read(4096):
                pass
        except asyncio.IncompleteReadError:
            pass  # it hung up before it asked
        finally:
            for end in (requests, writer):
                end.close()
                await end.wait_closed()


@pytest.fixture(autouse=True)
def _swept(caplog: pytest.LogCaptureFixture) -> None:
    """What earlier tests have left is no complaint about this one."""
    gc.collect()
    caplog.clear()


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Nothing is closed by the garbage collector."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("start", [_open, _read, _scan, _transact])
async def test_a_start_that_is_given_up_leaves_no_connection(broker: Broker, start: Start) -> None:
    """aiokafka's bootstrap forgets its connection when it is cancelled while it waits for the
    metadata."""
    peer = StruckDumb(broker)
    async with peer.listening():
        with pytest.raises(BusUnavailable):
            await start(peer.address)
        if peer.open:
            await asyncio.wait(peer.open, timeout=SOON)
        assert not peer.open


def others() -> set[asyncio.Task[object]]:
    """The tasks beside the test's own."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What asyncio says of results that nobody asked for, and of callbacks that fail."""
    gc.collect()
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "asyncio" and record.levelno >= logging.WARNING
    ]


@pytest.mark.parametrize(("away", "back"), [("pause", "resume"), ("kill", "start")])
async def test_publishes_that_are_given_up_leave_no_task(
    broker: Broker, caplog: pytest.LogCaptureFixture, away: str, back: str
) -> None:
    """Whether the broker is silent or gone, with several batches in hand."""
    topic = fresh("in")
    async with opened(broker.bootstrap, topic, request_timeout=2.0, batch_bytes=1024) as bus:
        await bus.publish(numbered(topic, 10))
        await asyncio.to_thread(getattr(broker, away))
        try:
            with pytest.raises(BusUnavailable):
                await bus.publish(numbered(topic, 1000))
        finally:
            await asyncio.to_thread(getattr(broker, back))
    assert not others()
    assert complaints(caplog) == []


@pytest.mark.parametrize("moment", [0.0, 0.008, 0.014, 0.018])
async def test_transactions_that_are_given_up_leave_no_task(
    broker: Broker, caplog: pytest.LogCaptureFixture, moment: float
) -> None:
    """Wherever in it the broker froze: aiokafka's own end waits for answers and connects anew."""
    if broker.name != "kafka":
        pytest.skip("needs HOOKBUS_TEST_BROKER=kafka")
    topic, target = fresh("in"), fresh("out")
    short = {"exactly_once": True, "request_timeout": 2.0, "session_timeout": 20.0}
    async with opened(broker.bootstrap, topic, target, **short) as bus:
        await bus.publish(numbered(topic, 100))
        reader = await bus.reader(fresh("g"), [topic])
        records = await collect(reader, 100)
        settling = asyncio.create_task(reader.settle(done(records, target)))
        await asyncio.sleep(moment)
        broker.pause()
        try:
            with contextlib.suppress(BusUnavailable):  # or it was quicker
                await settling
        finally:
            broker.resume()
    assert not others()
    assert complaints(caplog) == []


@pytest.mark.parametrize("exactly_once", [False, True])
async def test_a_bus_that_is_closed_while_the_broker_is_silent_leaves_no_task(
    broker: Broker, caplog: pytest.LogCaptureFixture, exactly_once: bool
) -> None:
    """Neither of its publisher nor of a reader with records in hand."""
    if exactly_once and broker.name != "kafka":
        pytest.skip("needs HOOKBUS_TEST_BROKER=kafka")
    topic = fresh("in")
    short = {"exactly_once": exactly_once, "request_timeout": 2.0, "close_timeout": 1.0}
    async with opened(broker.bootstrap, topic) as before:
        await before.publish(numbered(topic, 10))
    bus = KafkaBus(settings(broker.bootstrap, **short))
    await bus.open([topic])
    await bus.publish(numbered(topic, 10))
    await collect(await bus.reader(fresh("g"), [topic]), 20)
    broker.pause()
    try:
        await bus.close()
    finally:
        broker.resume()
    assert not others()
    assert complaints(caplog) == []
