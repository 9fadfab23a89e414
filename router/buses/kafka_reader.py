"""One member of a Kafka consumer group.

A pump keeps polling into a small buffer, so that the membership outlives slow processing, and
pauses the partitions while the buffer is full, so that memory doesn't grow meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from hookbus.router.buses.changes import Changes
from hookbus.router.buses.kafka_buffer import Buffer
from hookbus.router.buses.kafka_client import bounded, mapped, seen
from hookbus.router.buses.kafka_close import stop_consumer
from hookbus.router.buses.kafka_lag import measure_lag
from hookbus.router.buses.kafka_membership import has_identity
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.kafka_start import connect
from hookbus.router.errors import BusFatal, BusUnavailable, HookbusError
from hookbus.router.types import Partition, Record, Settlement

log = logging.getLogger("hookbus.bus")

_POLL_MS: Final = 500
_BACKOFF: Final = 0.2
_ALIVE: Final = 1.0  # how often a member with a full buffer shows that it is alive, in seconds


class Delivery(Protocol):
    """How a reader settles."""

    async def begin(self, homes: Collection[Partition]) -> None:
        """New assignments have begun; what has to precede their first record is done, or goes on
        while they are not ready."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> bool:
        """Publish the outputs and advance the group, as far as the assignments go on; False if the
        member has lost all of them. Raises BusUnavailable, BusFatal or OutputTooLarge."""
        ...

    async def end(self) -> None:
        """All assignments are over."""
        ...


class KafkaReader:
    """A rebalance ends every assignment (aiokafka's protocol is eager): what was not settled comes
    again, to whoever owns the partition then."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        settings: KafkaSettings,
        delivery_of: Callable[[Buffer, Callable[[HookbusError | None], None]], Delivery],
    ) -> None:
        self._consumer = consumer
        self._settings = settings
        self._buffer = Buffer(settings.read_ahead)
        self._delivery = delivery_of(self._buffer, self._report)
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
        await connect(self._consumer, deadline, "joining a group")
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
        settling = asyncio.ensure_future(self._settle(settlements))
        settling.add_done_callback(seen)
        await asyncio.shield(settling)

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
        return {home: lag for home, lag in found.items() if self._buffer.still(home, held[home])}

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        await self._delivery.end()
        await stop_consumer(self._consumer, self._settings.close_timeout)
        self._end()
        await self._delivery.end()  # of an assignment that came in the middle of this

    # What the rebalance listener calls.

    async def revoked(self) -> None:
        """End the assignment, after a settlement that is under way, if that is soon."""
        self._note_reset()
        self._buffer.drop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.session_timeout / 2), self._settling:
                pass
        self._end()
        await self._delivery.end()

    async def assigned_now(self, partitions: Sequence[TopicPartition]) -> None:
        if self._closed:
            return
        homes = [Partition(*partition) for partition in partitions]
        self._buffer.begin(homes)
        self._changes.notify()
        await self._delivery.begin(homes)

    async def _settle(self, settlements: Sequence[Settlement]) -> None:
        async with self._settling:
            if not await self._delivery.settle(settlements):
                self._end()  # aiokafka rejoins now; all of this comes again

    async def _poll(self) -> None:
        while not isinstance(self._error, BusFatal):
            try:
                await self._poll_once()
            except (KafkaError, OSError) as error:
                self._report(mapped(error, "reading"))
                await asyncio.sleep(_BACKOFF)

    async def _poll_once(self) -> None:
        if self._buffer.room <= 0:
            await self._buffer.wait_for_room(_ALIVE)
        room = self._buffer.room
        if room <= 0:
            # Nothing comes from paused partitions, but the poll shows that the member is alive,
            # and brings the errors of the group to light.
            self._consumer.pause(*self._consumer.assignment())
        else:
            self._consumer.resume(*filter(self._is_ready, self._consumer.paused()))
        fetched = await self._consumer.getmany(
            timeout_ms=_POLL_MS if room > 0 else 0, max_records=max(room, 1)
        )
        for partition, messages in fetched.items():
            self._buffer.keep(Partition(*partition), messages)
        if fetched:
            self._changes.notify()

    def _is_ready(self, partition: TopicPartition) -> bool:
        held = self._buffer.held.get(Partition(*partition))
        return held is None or held.ready

    def _report(self, error: HookbusError | None) -> None:
        """Let whoever receives know of an error, or that a partition is ready."""
        if error is not None and not isinstance(self._error, BusFatal):
            self._error = error
        self._changes.notify()

    def _end(self) -> None:
        self._buffer.end()
        self._changes.notify()

    def _note_reset(self) -> None:
        """See whether another process has the same static identity. The broker then disowns each
        in turn, and aiokafka, which can't be told so, rejoins for ever: both read everything. One
        reset may be an outage; two within a session can't."""
        if self._settings.group_instance_id is None or not self.assigned():
            return
        if not has_identity(self._consumer):
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
        await self._reader.assigned_now(assigned)
