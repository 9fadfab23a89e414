"""The router loop as the service runs it, for as many events as a benchmark wants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry

from hookbus.router import build, build_bus
from hookbus.router.bench.events import Sample
from hookbus.router.configuration.config import Config
from hookbus.router.pending import PendingStore
from hookbus.router.router_loop import NAME, RouterLoop
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.types import Bus, Output, Partition, Reader, Record, Settlement

_PORTION: Final = 1000
_PATIENCE: Final = 60.0


async def fill(bus: Bus, topic: str, samples: Sequence[Sample]) -> None:
    """Append the events to a topic."""
    for start in range(0, len(samples), _PORTION):
        portion = samples[start : start + _PORTION]
        await bus.publish([Output(topic, one.source, one.value) for one in portion])


class Routing:
    """One member of the router's group, in this process."""

    def __init__(self, config: Config, bus: Bus, reader: Reader) -> None:
        self._reader = _Counted(reader)
        self._loop = RouterLoop(
            self._reader,
            build.pipeline(config, build.decoder(config)),
            PendingStore(bus, build_bus.changelogs(config), partial(build.memory, config)),
            ingress_of=build_bus.ingress_of(config),
            routes=tuple(config.routes),
            batch=config.bus.max_poll_records,
            overlap=build_bus.overlap(config),
            metrics=Metrics(CollectorRegistry(), config, build.known_types(), "bench"),
            progress=Progress(time.monotonic, _PATIENCE),
            clock=time.monotonic,
        )

    async def run(self, events: int) -> float:
        """Route so many events; seconds from the start to the settlement of the last."""
        stop = asyncio.Event()
        self._reader.expect(events, stop)
        started = time.perf_counter()
        await self._loop.run(stop)
        return self._reader.ended - started


@asynccontextmanager
async def routing(config: Config) -> AsyncIterator[tuple[Bus, Routing]]:
    """The bus of the configuration with its topics, and the only member of the group."""
    bus = build_bus.bus(config)
    try:
        await bus.open(build_bus.topics(config), build_bus.changelogs(config))
        group = f"{config.bus.group}.{NAME}"
        reader = await bus.reader(group, build_bus.ingress_topics(config))
        yield bus, Routing(config, bus, reader)
    finally:
        await bus.close()


class _Counted:
    """A reader that tells when so many records are settled."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._left = 0
        self._stop = asyncio.Event()
        self.ended = 0.0

    def expect(self, records: int, stop: asyncio.Event) -> None:
        self._left, self._stop = records, stop

    async def receive(self, limit: int, wait: float) -> list[Record]:
        return await self._reader.receive(limit, wait)

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        await self._reader.settle(settlements)
        self._left -= len(settlements)
        if self._left <= 0:
            self.ended = time.perf_counter()
            self._stop.set()

    def assigned(self) -> frozenset[Partition]:
        return self._reader.assigned()

    def assignment(self, partition: Partition) -> object | None:
        return self._reader.assignment(partition)

    async def lag(self) -> Mapping[Partition, int]:
        return await self._reader.lag()

    async def close(self) -> None:
        await self._reader.close()
