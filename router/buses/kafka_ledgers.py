"""What an exactly-once reader knows of its partitions, and the producers that are open for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    AIOKafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)

from hookbus.router.buses.kafka_buffer import Held, Work
from hookbus.router.buses.kafka_client import bounded
from hookbus.router.buses.kafka_close import drop_producer
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.kafka_transaction import fencing_producer
from hookbus.router.errors import BusUnavailable
from hookbus.router.types import Partition

_MOST: Final = 100  # producers of one reader; each has a few connections
_STARTING: Final = 16


class Ledger:
    """What is known of one partition during one assignment."""

    def __init__(self, held: Held) -> None:
        self.held = held
        self.producer: AIOKafkaProducer | None = None
        self.known: OffsetAndMetadata | None = None  # the group's position, as last seen
        self.attempt: tuple[OffsetAndMetadata, Work] | None = None  # not known how it ended

    def passed(self, mark: OffsetAndMetadata, work: Work) -> None:
        self.known, self.attempt = mark, None
        self.held.committed = mark.offset
        work.done()

    async def drop(self) -> None:
        producer, self.producer = self.producer, None
        if producer is not None:
            await drop_producer(producer)


class Ledgers:
    """The ledgers of the present assignments. At most 100 of their producers are open; those that
    have been idle for longest are closed for others, and started again when they are needed."""

    def __init__(self, consumer: AIOKafkaConsumer, settings: KafkaSettings, group: str) -> None:
        self._consumer = consumer
        self._settings = settings
        self._group = group
        self._ledgers: dict[Partition, Ledger] = {}  # the least recently used first
        self._busy: set[Partition] = set()
        self._slots = asyncio.Semaphore(_MOST)
        self._starting = asyncio.Semaphore(_STARTING)

    def add(self, ledgers: Mapping[Partition, Ledger]) -> None:
        self._ledgers |= ledgers

    async def drop(self) -> None:
        """All assignments are over."""
        ledgers, self._ledgers = self._ledgers, {}
        await asyncio.gather(*(ledger.drop() for ledger in ledgers.values()))

    def use(self, home: Partition) -> Ledger | None:
        """The ledger of a partition that is held and ready."""
        ledger = self._ledgers.get(home)
        if ledger is None or not ledger.held.ready:
            return None
        self._ledgers[home] = self._ledgers.pop(home)  # the most recently used is last
        return ledger

    @asynccontextmanager
    async def slot(self, home: Partition) -> AsyncIterator[None]:
        """Within it the partition's producer is not closed for others."""
        async with self._slots:
            self._busy.add(home)
            try:
                yield
            finally:
                self._busy.discard(home)

    async def renew(self, home: Partition, ledger: Ledger) -> OffsetAndMetadata | None:
        """Fence whoever has the partition's transactional id, then read the group's position."""
        await ledger.drop()
        await self._make_room()
        async with self._starting:
            producer = await fencing_producer(
                self._settings, f"{self._group}.{home.topic}.{home.number}"
            )
        try:
            if self._ledgers.get(home) is not ledger:
                raise BusUnavailable("a transaction: the assignment has ended meanwhile")
            found = await bounded(
                self._committed(TopicPartition(*home)),
                self._settings.request_timeout,
                "reading a position",
            )
        except BaseException:
            await drop_producer(producer)
            raise
        ledger.producer = producer
        return found

    async def _committed(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        found = await self._consumer._coordinator.fetch_committed_offsets([partition])
        return found.get(partition)

    async def _make_room(self) -> None:
        """Close the producers that have been idle for longest, if there are too many."""
        idle = [
            ledger
            for home, ledger in self._ledgers.items()
            if ledger.producer is not None and home not in self._busy
        ]
        surplus = len(idle) + len(self._busy) - _MOST
        for ledger in idle[: max(0, surplus)]:
            await ledger.drop()
