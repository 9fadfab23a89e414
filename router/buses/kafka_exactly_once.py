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
from collections.abc import Callable, Collection, Sequence
from typing import Final
from uuid import uuid4

from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    OffsetAndMetadata,
    TopicPartition,
)
from aiokafka.errors import (  # type: ignore[import-untyped]
    IllegalStateError,
    KafkaError,
    ProducerFenced,
)

from hookbus.router.buses.kafka_buffer import Buffer, Work
from hookbus.router.buses.kafka_client import mapped
from hookbus.router.buses.kafka_close import abandon_producer
from hookbus.router.buses.kafka_ledgers import Ledger, Ledgers
from hookbus.router.buses.kafka_membership import is_member
from hookbus.router.buses.kafka_send import check_sizes
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.kafka_transaction import transact
from hookbus.router.buses.placement import Placement
from hookbus.router.errors import BusFatal, BusUnavailable, HookbusError
from hookbus.router.types import Partition, Settlement

log = logging.getLogger("hookbus.bus")

_BACKOFF: Final = 0.2


class ExactlyOnce:
    """What a reader does with its settlements if the bus is to be exactly-once. Exact as long as
    the records of a partition are settled in order."""

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
        self._ledgers = Ledgers(consumer, settings, group)
        self._preparing: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Task[None] | None = None

    async def begin(self, homes: Collection[Partition]) -> None:
        """Nothing is read from a partition before its former owner is fenced. Returns when all are
        or, because the member shows no life meanwhile, after a part of the session; the rest go on
        in the background."""
        self._consumer.pause(*(TopicPartition(*home) for home in homes))
        ledgers = {home: Ledger(self._buffer.held[home]) for home in homes}
        for ledger in ledgers.values():
            ledger.held.ready = False
        await self.end()
        self._ledgers.add(ledgers)
        for home, ledger in ledgers.items():
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
        await self._ledgers.drop()

    async def _prepare(self, home: Partition, ledger: Ledger) -> None:
        while True:
            try:
                async with self._ledgers.slot(home):
                    found = await self._ledgers.renew(home, ledger)
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

    def _go_on(self, home: Partition, ledger: Ledger, found: OffsetAndMetadata | None) -> None:
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
        async with self._ledgers.slot(home):
            ledger = self._ledgers.use(home)
            if ledger is None:
                return True  # of a former assignment; this one has had no record yet
            if ledger.producer is None and not await self._resolve(home, ledger):
                return True
            works, _ = self._buffer.works(settlements)
            return all([await self._commit(ledger, work) for work in works])

    async def _commit(self, ledger: Ledger, work: Work) -> bool:
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

    async def _resolve(self, home: Partition, ledger: Ledger) -> bool:
        """Start a producer, and see how the last attempt ended; whether the assignment goes on."""
        if not self._buffer.still(home, ledger.held):
            return False  # whoever has the partition now must not be fenced
        found = await self._ledgers.renew(home, ledger)
        if not self._buffer.still(home, ledger.held):
            return False
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
