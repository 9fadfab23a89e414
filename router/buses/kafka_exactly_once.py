"""Settles exactly once: the outputs and the offset of a partition in one transaction.

Whoever begins with a partition starts a producer with that partition's transactional id, and reads
the committed offset after that: the former owner can't commit any more, so the offset is final.
The offset's metadata name the transaction that committed it. After a failure the same two steps
tell what became of it: committed, without effect, or overtaken by another owner.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import uuid4

from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    AIOKafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from aiokafka.errors import (  # type: ignore[import-untyped]
    IllegalStateError,
    KafkaError,
    ProducerFenced,
)

from hookbus.router.buses.kafka_buffer import Buffer, Held, Work
from hookbus.router.buses.kafka_client import bounded, mapped
from hookbus.router.buses.kafka_close import abandon_producer, drop_producer
from hookbus.router.buses.kafka_membership import is_member
from hookbus.router.buses.kafka_send import check_sizes
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.kafka_transaction import fencing_producer, transact
from hookbus.router.buses.placement import Placement
from hookbus.router.errors import BusFatal, BusUnavailable, HookbusError
from hookbus.router.types import Partition, Settlement

log = logging.getLogger("hookbus.bus")

_MOST: Final = 100  # producers of one reader; each has a few connections
_STARTING: Final = 16
_BACKOFF: Final = 0.2


class _Ledger:
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


class ExactlyOnce:
    """What a reader does with its settlements if the bus is to be exactly-once. Exact as long as
    the records of a partition are settled in order. At most 100 producers are open."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        buffer: Buffer,
        settings: KafkaSettings,
        group: str,
        report: Callable[[HookbusError | None], None],
    ) -> None:
        self._consumer = consumer
        self._buffer = buffer
        self._settings = settings
        self._group = group
        self._report = report
        self._placement = Placement()
        self._ledgers: dict[Partition, _Ledger] = {}  # the least recently used first
        self._busy: set[Partition] = set()
        self._slots = asyncio.Semaphore(_MOST)
        self._starting = asyncio.Semaphore(_STARTING)
        self._preparing: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Task[None] | None = None

    async def begin(self, homes: Collection[Partition]) -> None:
        """Nothing is read from a partition before its former owner is fenced. Returns when all are
        or, because the member shows no life meanwhile, after a part of the session; the rest go on
        in the background."""
        self._consumer.pause(*(TopicPartition(*home) for home in homes))
        ledgers = {home: _Ledger(self._buffer.held[home]) for home in homes}
        for ledger in ledgers.values():
            ledger.held.ready = False
        await self.end()
        for home, ledger in ledgers.items():
            self._ledgers[home] = ledger
            task = asyncio.create_task(self._prepare(home, ledger), name="hookbus-fence")
            task.add_done_callback(self._prepared)
            self._preparing.add(task)
        if self._preparing:
            await asyncio.wait(self._preparing, timeout=self._settings.session_timeout / 3)

    async def settle(self, settlements: Sequence[Settlement]) -> bool:
        """Each partition in a transaction of its own, at once."""
        check_sizes(self._buffer.works(settlements)[1], self._settings.max_message_bytes)
        homes: dict[Partition, list[Settlement]] = defaultdict(list)
        for settlement in settlements:
            homes[settlement.record.home].append(settlement)
        results = await asyncio.gather(
            *(self._settle(home, part) for home, part in homes.items()), return_exceptions=True
        )
        errors = [result for result in results if isinstance(result, BaseException)]
        for error in sorted(errors, key=lambda error: isinstance(error, BusUnavailable)):
            raise error
        return all(results)

    async def end(self) -> None:
        # Whoever calls may be cancelled, and no producer must be forgotten because of that.
        self._ending = asyncio.create_task(self._end(self._ending))
        await asyncio.shield(self._ending)

    async def _end(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        for task in self._preparing:
            task.cancel()
        await asyncio.gather(*self._preparing, return_exceptions=True)
        self._preparing.clear()
        ledgers, self._ledgers = self._ledgers, {}
        await asyncio.gather(*(ledger.drop() for ledger in ledgers.values()))

    async def _prepare(self, home: Partition, ledger: _Ledger) -> None:
        while True:
            try:
                async with self._slot(home):
                    found = await self._renew(home, ledger)
            except BusUnavailable as error:
                self._report(error)
                await asyncio.sleep(_BACKOFF)
            except BusFatal as error:
                self._report(error)
                return
            else:
                self._go_on(home, ledger, found)
                return

    def _prepared(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._report(BusFatal(f"taking a partition over: {type(error).__name__}"))

    def _go_on(self, home: Partition, ledger: _Ledger, found: OffsetAndMetadata | None) -> None:
        """Read from the group's position on; without one the consumer starts at the oldest."""
        ledger.known = found
        partition = TopicPartition(*home)
        with contextlib.suppress(IllegalStateError):  # revoked just now
            if found is not None:
                ledger.held.committed = found.offset
                self._consumer.seek(partition, found.offset)
            self._consumer.resume(partition)
        ledger.held.ready = True
        self._report(None)

    async def _settle(self, home: Partition, settlements: Sequence[Settlement]) -> bool:
        async with self._slot(home):
            ledger = self._ledgers.get(home)
            if ledger is None or not ledger.held.ready:
                return True  # of a former assignment; this one has had no record yet
            self._ledgers[home] = self._ledgers.pop(home)  # the most recently used is last
            if ledger.producer is None and not await self._resolve(home, ledger):
                return True
            works, _ = self._buffer.works(settlements)
            return all([await self._commit(ledger, work) for work in works])

    async def _commit(self, ledger: _Ledger, work: Work) -> bool:
        """Whether the member is still one; otherwise nothing was committed."""
        mark = OffsetAndMetadata(work.position, uuid4().hex)
        ledger.attempt = mark, work
        producer, partition = ledger.producer, TopicPartition(*work.home)
        try:
            async with asyncio.timeout(self._settings.request_timeout):
                await transact(
                    producer, self._placement, self._group, work.outputs, {partition: mark}
                )
        except BaseException as error:
            ledger.producer = None
            await abandon_producer(producer)
            if isinstance(error, ProducerFenced):
                return await self._outlive_fencing(work)
            if isinstance(error, KafkaError | OSError):
                raise mapped(error, "a transaction") from error
            raise
        ledger.passed(mark, work)
        return True

    async def _outlive_fencing(self, work: Work) -> bool:
        """The broker says the same of a transaction that took too long and of one whose partition
        has another owner now; the group knows which."""
        if await is_member(self._consumer, self._settings):
            raise BusUnavailable("a transaction: its producer was fenced or took too long")
        log.warning(
            "another member has taken over; what was in hand is dropped, nothing is committed",
            extra={"topic": work.home.topic, "partition": work.home.number},
        )
        return False

    async def _resolve(self, home: Partition, ledger: _Ledger) -> bool:
        """Start a producer, and see how the last attempt ended; whether the assignment goes on."""
        found = await self._renew(home, ledger)
        if ledger.attempt is not None and found == ledger.attempt[0]:
            ledger.passed(*ledger.attempt)
            return True
        ledger.attempt = None
        if found == ledger.known:
            return True
        log.warning(
            "another process has settled records of this partition; going on from there",
            extra={"topic": home.topic, "partition": home.number},
        )
        ledger.held = self._buffer.restart(home)
        self._go_on(home, ledger, found)
        return False

    async def _renew(self, home: Partition, ledger: _Ledger) -> OffsetAndMetadata | None:
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

    @asynccontextmanager
    async def _slot(self, home: Partition) -> AsyncIterator[None]:
        async with self._slots:
            self._busy.add(home)
            try:
                yield
            finally:
                self._busy.discard(home)

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
