"""Publishes to Kafka in whole batches, each acknowledged by all in-sync replicas."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.errors import (  # type: ignore[import-untyped]
    IncompatibleBrokerVersion,
    KafkaError,
    UnknownError,
    UnsupportedVersionError,
)

from hookbus.router.buses.kafka_client import bounded, mapped, seen
from hookbus.router.buses.kafka_close import drop_producer, stop_producer
from hookbus.router.buses.kafka_send import deliver, pack, partition_counts, producer_options
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.kafka_start import start
from hookbus.router.buses.placement import Placement
from hookbus.router.errors import BusFatal, BusUnavailable
from hookbus.router.types import Output

log = logging.getLogger("hookbus.bus")
T = TypeVar("T")

_NOT_IDEMPOTENT: Final = (UnknownError, UnsupportedVersionError, IncompatibleBrokerVersion)


class _Shared:
    """A producer that several publish through at once; all of them learn that it was given up, as
    some of what aiokafka waits for would never come."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self.producer = producer
        self._given_up = asyncio.Event()

    async def attempt(self, work: Coroutine[Any, Any, T]) -> T:
        """Raises what `work` raises, and BusUnavailable."""
        working = asyncio.create_task(work)
        ending = asyncio.create_task(self._given_up.wait())
        working.add_done_callback(seen)
        try:
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise BusUnavailable("a publish: another one failed, and the producer was given up")
            return working.result()
        finally:
            working.cancel()
            ending.cancel()

    async def give_up(self) -> None:
        self._given_up.set()
        await drop_producer(self.producer)


class KafkaPublisher:
    """One producer for the process, replaced after any failure: a batch that was given up leaves
    a gap in an idempotent producer's sequence, and every later batch would be refused."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._placement = Placement()
        self._shared: _Shared | None = None
        self._starting = asyncio.Lock()
        self._idempotent = True
        self._closed = False

    async def start(self) -> None:
        """Connect. Raises BusUnavailable or BusFatal."""
        await self._started()

    async def publish(self, outputs: Sequence[Output]) -> None:
        """Append in order within each partition; all are acknowledged on return. Raises
        OutputTooLarge before anything is sent, and BusUnavailable if an acknowledgement is
        missing, when some of the outputs may have been appended."""
        if not outputs:
            return
        shared = await self._started()
        producer = shared.producer
        counts = await self._attempt(shared, partition_counts(producer, outputs))
        limit = self._settings.max_message_bytes
        packed = pack(producer, self._placement, counts, outputs, limit)
        await self._attempt(shared, deliver(producer, packed))

    async def close(self) -> None:
        self._closed = True
        shared, self._shared = self._shared, None
        if shared is not None:
            await stop_producer(shared.producer, self._settings.close_timeout)

    async def _started(self) -> _Shared:
        async with self._starting:
            if self._closed:
                raise BusFatal("the bus is closed")
            if self._shared is None:
                self._shared = _Shared(await self._start())
            return self._shared

    async def _start(self) -> AIOKafkaProducer:
        producer = self._build()
        try:
            async with asyncio.timeout(self._settings.request_timeout):
                await start(producer)
        except _NOT_IDEMPOTENT as error:
            await stop_producer(producer, self._settings.close_timeout)
            if not self._idempotent:
                raise mapped(error, "a producer's start") from error
            self._idempotent = False
            log.warning(
                "this broker has no idempotent producers (%s): publishing with acks=all only, so a"
                " retry after a lost acknowledgement may append a record twice",
                type(error).__name__,
            )
            return await self._start()
        except (KafkaError, OSError) as error:
            await stop_producer(producer, self._settings.close_timeout)
            raise mapped(error, "a producer's start") from error
        except BaseException:
            await drop_producer(producer)
            raise
        return producer

    def _build(self) -> AIOKafkaProducer:
        return AIOKafkaProducer(
            **producer_options(self._settings), enable_idempotence=self._idempotent
        )

    async def _attempt(self, shared: _Shared, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await bounded(shared.attempt(work), self._settings.request_timeout, "a publish")
        except BaseException:
            if self._shared is shared:
                self._shared = None
            await shared.give_up()
            raise
