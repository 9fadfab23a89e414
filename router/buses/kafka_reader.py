"""One member of a Kafka consumer group.

A pump keeps polling into a small buffer, so that the membership outlives slow processing, and
pauses the partitions while the buffer is full, so that memory doesn't grow meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.errors import (  # type: ignore[import-untyped]
    CommitFailedError,
    IllegalStateError,
    KafkaError,
)

from hookbus.router.buses.changes import Changes
from hookbus.router.buses.kafka_buffer import Buffer, Held
from hookbus.router.buses.kafka_client import bounded, mapped
from hookbus.router.buses.kafka_close import stop_consumer
from hookbus.router.buses.kafka_lag import measure_lag
from hookbus.router.buses.kafka_producer import KafkaPublisher
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.errors import BusFatal, BusUnavailable, HookbusError
from hookbus.router.types import Output, Partition, Record, Settlement

log = logging.getLogger("hookbus.bus")

_POLL_MS: Final = 500
_BACKOFF: Final = 0.2
_ALIVE: Final = 1.0  # how often a member with a full buffer shows that it is alive, in seconds


class KafkaReader:
    """Delivers at least once: publish, wait for every acknowledgement, then commit.

    A rebalance ends every assignment (aiokafka's protocol is eager): what was not settled comes
    again, to whoever owns the partition then.
    """

    def __init__(
        self, consumer: AIOKafkaConsumer, publisher: KafkaPublisher, settings: KafkaSettings
    ) -> None:
        self._consumer = consumer
        self._publisher = publisher
        self._settings = settings
        self._buffer = Buffer()
        self._reset: float | None = None
        self._changes = Changes()
        self._settling = asyncio.Lock()
        self._error: HookbusError | None = None
        self._closed = False
        self._pump: asyncio.Task[None] | None = None

    async def start(self, topics: Sequence[str]) -> None:
        """Join the group and wait for the first assignment, which may be empty."""
        self._consumer.subscribe(topics, listener=_Listener(self))
        # A dead member has to be noticed, and the living have to come back: a session each.
        deadline = self._settings.request_timeout + 2 * self._settings.session_timeout
        await bounded(self._consumer.start(), deadline, "joining a group")
        self._pump = asyncio.create_task(self._poll(), name="hookbus-poll")
        self._pump.add_done_callback(lambda _: self._changes.notify())

    async def receive(self, limit: int, wait: float) -> list[Record]:
        deadline = asyncio.get_running_loop().time() + wait
        while True:
            self._refuse_fatal()
            seen = self._changes.count
            records = self._buffer.take(limit)
            if records:
                return records
            self._check()
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return records
            await self._changes.after(seen, left)

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        self._refuse_fatal()
        # A caller that is cancelled must not leave a commit that nobody remembers.
        await asyncio.shield(asyncio.ensure_future(self._settle(settlements)))

    def assigned(self) -> frozenset[Partition]:
        return frozenset(self._buffer.held)

    def assignment(self, partition: Partition) -> object | None:
        return self._buffer.held.get(partition)

    @property
    def buffered(self) -> int:
        """How many records wait to be received; bounded."""
        return len(self._buffer)

    async def lag(self) -> Mapping[Partition, int]:
        held = dict(self._buffer.held)
        if not held:
            return {}
        found = await bounded(
            measure_lag(self._consumer, held), self._settings.request_timeout, "measuring the lag"
        )
        return {home: lag for home, lag in found.items() if self._still(home, held[home])}

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        await stop_consumer(self._consumer, self._settings.close_timeout)
        self._end()

    # What the rebalance listener calls.

    async def revoked(self) -> None:
        """End the assignment, after a settlement that is under way, if that is soon."""
        self._note_reset()
        self._buffer.drop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.session_timeout / 2), self._settling:
                pass
        self._end()

    def assigned_now(self, partitions: Sequence[TopicPartition]) -> None:
        self._buffer.begin(Partition(*partition) for partition in partitions)
        self._changes.notify()

    async def _settle(self, settlements: Sequence[Settlement]) -> None:
        async with self._settling:
            offsets: dict[Partition, set[int]] = {}
            outputs: list[Output] = []
            for settlement in settlements:
                home, offset = settlement.record.home, settlement.record.offset
                held = self._buffer.held.get(home)
                if held is None or not held.mark.holds(offset):
                    continue  # of a former assignment, or settled before
                settled = offsets.setdefault(home, set())
                if offset in settled:
                    continue  # received twice, in a former assignment and in this one
                settled.add(offset)
                outputs += settlement.outputs
            touched = {home: self._buffer.held[home] for home in offsets}
            if touched and await self._deliver(outputs, offsets, touched):
                for home, held in touched.items():
                    for offset in offsets[home]:
                        held.mark.settled(offset)

    async def _deliver(
        self,
        outputs: Sequence[Output],
        offsets: Mapping[Partition, Collection[int]],
        touched: Mapping[Partition, Held],
    ) -> bool:
        """Publish, then commit; whether the group moved. The place for a transaction later."""
        await self._publisher.publish(outputs)
        reached: dict[TopicPartition, int | None] = {}
        for home, held in touched.items():
            position = held.mark.after(offsets[home])
            # Taken away meanwhile: the commit would move somebody else's position.
            if self._still(home, held) and position not in (None, held.committed):
                reached[TopicPartition(*home)] = position
        if reached and not await self._commit(reached):
            if any(self._still(home, held) for home, held in touched.items()):
                self._end()  # aiokafka rejoins now; all of this comes again
            return False
        for partition, position in reached.items():
            touched[Partition(*partition)].committed = position
        return True

    async def _commit(self, reached: Mapping[TopicPartition, int | None]) -> bool:
        try:
            async with asyncio.timeout(self._settings.request_timeout):
                await self._consumer.commit(dict(reached))
        except (CommitFailedError, IllegalStateError):
            log.info("a commit came after the assignment had ended; its records come again")
            return False
        except (KafkaError, OSError) as error:
            raise mapped(error, "a commit") from error
        return True

    async def _poll(self) -> None:
        while not isinstance(self._error, BusFatal):
            try:
                await self._poll_once()
            except (KafkaError, OSError) as error:
                self._error = mapped(error, "reading")
                self._changes.notify()
                await asyncio.sleep(_BACKOFF)

    async def _poll_once(self) -> None:
        if self._buffer.room <= 0:
            await self._buffer.wait_for_room(_ALIVE)
        room = self._buffer.room
        if room <= 0:
            # Nothing comes from paused partitions, but the poll shows that the member is alive,
            # and brings the errors of the group to light.
            self._consumer.pause(*self._consumer.assignment())
        elif paused := self._consumer.paused():
            self._consumer.resume(*paused)
        fetched = await self._consumer.getmany(
            timeout_ms=_POLL_MS if room > 0 else 0, max_records=max(room, 1)
        )
        for partition, messages in fetched.items():
            self._buffer.keep(Partition(*partition), messages)
        if fetched:
            self._changes.notify()

    def _still(self, home: Partition, held: Held) -> bool:
        """Whether the assignment that `held` belongs to goes on."""
        return self._buffer.held.get(home) is held

    def _end(self) -> None:
        self._buffer.end()
        self._changes.notify()

    def _note_reset(self) -> None:
        """See whether another process has the same static identity. The broker then disowns each
        in turn, and aiokafka, which can't be told so, rejoins for ever: both read everything. One
        reset may be an outage; two within a session can't."""
        coordinator = self._consumer._coordinator
        if self._settings.group_instance_id is None or not self.assigned():
            return
        if coordinator.member_id == "":
            now = asyncio.get_running_loop().time()
            if self._reset is not None and now - self._reset < self._settings.session_timeout:
                self._error = BusFatal(
                    "fenced: another process is in the group with the same group_instance_id"
                )
            self._reset = now

    def _refuse_fatal(self) -> None:
        if isinstance(self._error, BusFatal):
            raise self._error

    def _check(self) -> None:
        """Raise what the pump met: a passing error once, a fatal one for ever."""
        error = self._error
        if isinstance(error, BusUnavailable):
            self._error = None
        if error is not None:
            raise error
        if self._closed or self._pump is None or self._pump.done():
            raise BusFatal("the reader is closed")


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, reader: KafkaReader) -> None:
        self._reader = reader

    async def on_partitions_revoked(self, revoked: Sequence[TopicPartition]) -> None:
        await self._reader.revoked()

    async def on_partitions_assigned(self, assigned: Sequence[TopicPartition]) -> None:
        self._reader.assigned_now(assigned)
