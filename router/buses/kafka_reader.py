"""One member of a Kafka consumer group.

A pump keeps polling into a small buffer, so that the membership outlives slow processing, and
pauses the partitions while the buffer is full, so that memory doesn't grow meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

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
from hookbus.router.buses.kafka_client import bounded, mapped
from hookbus.router.buses.kafka_close import stop_consumer
from hookbus.router.buses.kafka_producer import KafkaPublisher
from hookbus.router.buses.kafka_record import record_of
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.errors import BusFatal, BusUnavailable, HookbusError
from hookbus.router.types import Output, Partition, Record, Settlement
from hookbus.router.watermark import Watermark

log = logging.getLogger("hookbus.bus")

_BUFFERED: Final = 2000
_BUFFERED_BYTES: Final = 16 * 1024 * 1024
_POLL_MS: Final = 500
_BACKOFF: Final = 0.2


class _Held:
    """A partition during one assignment."""

    __slots__ = ("buffered", "committed", "mark")

    def __init__(self) -> None:
        self.mark = Watermark()
        self.buffered = 0
        self.committed: int | None = None


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
        self._held: dict[Partition, _Held] = {}
        self._buffer: deque[Record] = deque()
        self._bytes = 0
        self._changes = Changes()
        self._room = asyncio.Event()
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
            seen = self._changes.count
            records = self._take(limit)
            if records:
                return records
            self._check()
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return records
            await self._changes.after(seen, left)

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        if isinstance(self._error, BusFatal):
            raise self._error
        # A caller that is cancelled must not leave a commit that nobody remembers.
        await asyncio.shield(asyncio.ensure_future(self._settle(settlements)))

    def assigned(self) -> frozenset[Partition]:
        return frozenset(self._held)

    @property
    def buffered(self) -> int:
        """How many records wait to be received; bounded."""
        return len(self._buffer)

    async def lag(self) -> Mapping[Partition, int]:
        held = dict(self._held)
        if not held:
            return {}
        found = await bounded(
            self._measure(held), self._settings.request_timeout, "measuring the lag"
        )
        return {home: lag for home, lag in found.items() if self._held.get(home) is held[home]}

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
        self._drop_buffer()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.session_timeout / 2), self._settling:
                pass
        self._end()

    def assigned_now(self, partitions: Sequence[TopicPartition]) -> None:
        homes = [Partition(*partition) for partition in partitions]
        self._held = {home: self._held.get(home, _Held()) for home in homes}
        self._changes.notify()

    async def _settle(self, settlements: Sequence[Settlement]) -> None:
        async with self._settling:
            offsets: dict[Partition, list[int]] = {}
            outputs: list[Output] = []
            for settlement in settlements:
                home = settlement.record.home
                held = self._held.get(home)
                if held is None or not held.mark.holds(settlement.record.offset):
                    continue  # of a former assignment, or settled before
                offsets.setdefault(home, []).append(settlement.record.offset)
                outputs += settlement.outputs
            touched = {home: self._held[home] for home in offsets}
            if touched and await self._deliver(outputs, offsets, touched):
                for home, held in touched.items():
                    for offset in offsets[home]:
                        held.mark.settled(offset)

    async def _deliver(
        self,
        outputs: Sequence[Output],
        offsets: Mapping[Partition, Sequence[int]],
        touched: Mapping[Partition, _Held],
    ) -> bool:
        """Publish, then commit; whether the group moved. The place for a transaction later."""
        await self._publisher.publish(outputs)
        reached: dict[TopicPartition, int | None] = {}
        for home, held in touched.items():
            position = held.mark.after(offsets[home])
            # Taken away meanwhile: the commit would move somebody else's position.
            if self._held.get(home) is held and position not in (None, held.committed):
                reached[TopicPartition(*home)] = position
        if reached and not await self._commit(reached):
            if any(self._held.get(home) is held for home, held in touched.items()):
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
        while True:
            try:
                await self._poll_once()
            except (KafkaError, OSError) as error:
                self._error = mapped(error, "reading")
                self._changes.notify()
                if isinstance(self._error, BusFatal):
                    return
                await asyncio.sleep(_BACKOFF)

    async def _poll_once(self) -> None:
        room = self._space()
        if room <= 0:
            self._consumer.pause(*self._consumer.assignment())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._room.wait(), 1.0)
            room = self._space()
        elif paused := self._consumer.paused():
            self._consumer.resume(*paused)
        # While all are paused this returns nothing, but it shows that the member is alive and
        # brings the errors of the group to light.
        wait = _POLL_MS if room > 0 else 0
        fetched = await self._consumer.getmany(timeout_ms=wait, max_records=max(room, 1))
        for partition, messages in fetched.items():
            self._keep(Partition(*partition), messages)
        if fetched:
            self._changes.notify()

    def _keep(self, home: Partition, messages: Sequence[Any]) -> None:
        # Never dropped, even if the listener should hear of an assignment after its first records:
        # the watermark takes what wasn't received for a hole.
        held = self._held.setdefault(home, _Held())
        for message in messages:
            record = record_of(message)
            self._buffer.append(record)
            self._bytes += len(record.value or b"")
        held.buffered += len(messages)

    def _space(self) -> int:
        self._room.clear()
        if self._bytes >= _BUFFERED_BYTES:
            return 0
        return _BUFFERED - len(self._buffer)

    def _take(self, limit: int) -> list[Record]:
        taken: list[Record] = []
        while self._buffer and len(taken) < limit:
            record = self._buffer.popleft()
            self._bytes -= len(record.value or b"")
            held = self._held[record.home]
            held.buffered -= 1
            held.mark.received(record.offset)
            taken.append(record)
        if taken:
            self._room.set()
        return taken

    async def _measure(self, held: Mapping[Partition, _Held]) -> dict[Partition, int]:
        partitions = [TopicPartition(*home) for home in held]
        # Both at once: each waits behind the fetch that is under way.
        ends, starts = await asyncio.gather(
            self._consumer.end_offsets(partitions), self._consumer.beginning_offsets(partitions)
        )
        found = {}
        for home, one in held.items():
            partition = TopicPartition(*home)
            if one.committed is None:
                one.committed = await self._consumer.committed(partition)
            passed = max(one.committed or 0, starts[partition])
            if not one.mark.outstanding and not one.buffered and self._held.get(home) is one:
                # Nothing is in hand: what lies between is markers that nobody will ever receive.
                passed = max(passed, await self._consumer.position(partition))
            # Tansu 0.6 lists the start of the last batch as the end; a fetch tells the truth.
            end = max(ends[partition], self._consumer.highwater(partition) or 0)
            found[home] = max(0, end - passed)
        return found

    def _drop_buffer(self) -> None:
        self._buffer.clear()
        self._bytes = 0
        for held in self._held.values():
            held.buffered = 0
        self._room.set()

    def _end(self) -> None:
        self._drop_buffer()
        self._held = {}
        self._changes.notify()

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
