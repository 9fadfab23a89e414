"""The router loop: what it does while the bus settles."""

import asyncio
import json
import time
from functools import partial

from prometheus_client import CollectorRegistry

from hookbus.router import build, build_bus
from hookbus.router.bench.events import sessions
from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.configuration.config_file import parse
from hookbus.router.errors import BusUnavailable
from hookbus.router.pending import PendingStore
from hookbus.router.processes.persistence import Persistence
from hookbus.router.router_loop import NAME, RouterLoop
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.types import Output, Partition

CONFIG = """
bus: {{sqlite: {{path: {path}}}, create_topics: {{partitions: 1}}, max_poll_records: 10}}
ingress: {{agents: {{topics: [in]}}}}
routes: {{all: {{topic: all, capture: full}}}}
dead_letters: {{topic: dead, capture: full}}
"""
BATCHES = 7


class Held:
    """A reader whose first settlement waits until it may go on."""

    def __init__(self, reader):
        self._reader = reader
        self.go_on = asyncio.Event()
        self.received = 0
        self.settled = []

    def __getattr__(self, name):
        return getattr(self._reader, name)

    async def receive(self, limit, wait):
        records = await self._reader.receive(limit, wait)
        self.received += bool(records)
        return records

    async def settle(self, settlements):
        await self.go_on.wait()
        await self._reader.settle(settlements)
        self.settled += [settlement.record.offset for settlement in settlements]


class Told(Held):
    """A reader that tells when a batch is looked at, and when one is settled."""

    def __init__(self, reader):
        super().__init__(reader)
        self.go_on.set()
        self.told = []

    def assignment(self, partition):
        if self.told[-1:] != ["processing"]:
            self.told.append("processing")
        return self._reader.assignment(partition)

    async def settle(self, settlements):
        await super().settle(settlements)
        self.told.append("settled")


def loop_of(config, bus, reader, metrics, progress, *, overlap=True):
    return RouterLoop(
        reader,
        build.pipeline(config, build.decoder(config)),
        PendingStore(bus, build_bus.changelogs(config), partial(build.memory, config)),
        ingress_of=build_bus.ingress_of(config),
        routes=tuple(config.routes),
        batch=config.bus.max_poll_records,
        overlap=overlap,
        metrics=metrics,
        progress=progress,
        clock=time.monotonic,
    )


async def filled(config, values, bus=None):
    """The bus of a configuration, with these values in its ingress."""
    bus = bus or build_bus.bus(config)
    await bus.open(build_bus.topics(config), build_bus.changelogs(config))
    await bus.publish([Output("in", b"key", value) for value in values])
    return bus


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def in_flight(registry):
    return registry.get_sample_value("hookbus_in_flight", {"loop": NAME})


def test_one_batch_is_processed_while_the_one_before_is_settled(tmp_path):
    """And no more: the memory is bounded, and the order of settlements that of the records."""
    config = parse(CONFIG.format(path=tmp_path / "bus.db"))
    registry = CollectorRegistry()
    metrics = Metrics(registry, config, build.known_types(), "1.2.3")
    progress = Progress(time.monotonic)
    values = [one.value for one in sessions(0, 5)]

    async def play():
        bus = await filled(config, values)
        reader = Held(await bus.reader("group", ["in"]))
        stop = asyncio.Event()
        running = asyncio.create_task(loop_of(config, bus, reader, metrics, progress).run(stop))
        await until(lambda: in_flight(registry) == 20)
        assert reader.received == 2
        assert reader.settled == []
        reader.go_on.set()
        await until(lambda: len(reader.settled) == len(values))
        stop.set()
        await running
        copies = [record.value async for record in bus.scan("all", follow=False)]
        await bus.close()
        return reader, copies

    reader, copies = asyncio.run(play())
    assert reader.received == BATCHES
    assert reader.settled == list(range(len(values)))
    assert copies == values
    assert in_flight(registry) == 0


def test_a_bus_in_the_same_process_settles_a_batch_before_the_next_is_processed(tmp_path):
    """They would only get in each other's way."""
    config = parse(CONFIG.format(path=tmp_path / "bus.db"))
    assert not build_bus.overlap(config)
    metrics = Metrics(CollectorRegistry(), config, build.known_types(), "1.2.3")
    values = [one.value for one in sessions(0, 5)]

    async def play():
        bus = await filled(config, values)
        reader = Told(await bus.reader("group", ["in"]))
        stop = asyncio.Event()
        loop = loop_of(config, bus, reader, metrics, Progress(time.monotonic), overlap=False)
        running = asyncio.create_task(loop.run(stop))
        await until(lambda: len(reader.settled) == len(values))
        stop.set()
        await running
        await bus.close()
        return reader.told

    assert asyncio.run(play()) == ["processing", "settled"] * BATCHES


def test_a_record_whose_dead_letter_the_bus_refuses_gets_one_without_bytes(tmp_path):
    """It would come again and again, and end the loop each time; the others are not held up."""
    config = parse(CONFIG.format(path=tmp_path / "bus.db"))
    metrics = Metrics(CollectorRegistry(), config, build.known_types(), "1.2.3")
    valid = [one.value for one in sessions(0, 1)]
    values = [valid[0], b'{"id": "' + b"x" * 30_000 + b'"}', valid[1]]
    largest = max(map(len, values)) + 1000  # bytes in base64 are a third longer

    async def play():
        bus = await filled(
            config, values, SqliteBus(tmp_path / "bus.db", partitions=1, max_message=largest)
        )
        reader = Told(await bus.reader("group", ["in"]))
        stop = asyncio.Event()
        loop = loop_of(config, bus, reader, metrics, Progress(time.monotonic))
        running = asyncio.create_task(loop.run(stop))
        await until(lambda: len(reader.settled) == len(values) or running.done())
        stop.set()
        await running
        copies = [record.value async for record in bus.scan("all", follow=False)]
        dead = [json.loads(record.value) async for record in bus.scan("dead", follow=False)]
        await bus.close()
        return copies, dead

    copies, (letter,) = asyncio.run(play())
    assert copies == valid[:2]
    assert (letter["offset"], letter["reason"], letter.get("value")) == (1, "too_large", None)


def test_a_loop_whose_bus_is_away_is_alive(tmp_path):
    """However long: it would not do better after a restart."""
    now = 0.0
    progress = Progress(lambda: now, patience=60)
    config = parse(CONFIG.format(path=tmp_path / "bus.db"))
    metrics = Metrics(CollectorRegistry(), config, build.known_types(), "1.2.3")
    in_hand = Partition("in", 0)
    progress.took(in_hand)

    async def settle():
        nonlocal now
        now += 50
        if now < 200:
            assert progress.stuck() == []
            raise BusUnavailable("no answer")

    asyncio.run(Persistence(NAME, metrics, progress)(settle))
    assert now == 200
    now += 60
    assert progress.stuck() == [in_hand]


def test_a_call_that_the_bus_answers_does_not_hide_one_that_it_does_not(tmp_path):
    """The loop receives while it settles: it is ready once both go through."""
    config = parse(CONFIG.format(path=tmp_path / "bus.db"))
    progress = Progress(time.monotonic)
    progress.joined()
    metrics = Metrics(CollectorRegistry(), config, build.known_types(), "1.2.3")
    away = True

    async def settle():
        if away:
            raise BusUnavailable("no answer")

    async def receive():
        return []

    async def play():
        nonlocal away
        persist = Persistence(NAME, metrics, progress)
        settling = asyncio.create_task(persist(settle))
        await until(lambda: not progress.ready)
        await persist(receive)
        assert not progress.ready
        away = False
        await settling
        assert progress.ready

    asyncio.run(play())
