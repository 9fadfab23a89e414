"""Publishes to Kafka in whole batches, each acknowledged by all in-sync replicas."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.errors import (  # type: ignore[import-untyped]
    IncompatibleBrokerVersion,
    KafkaError,
    UnknownError,
    UnsupportedVersionError,
)

from hookbus.router.buses.kafka_client import bounded, mapped
from hookbus.router.buses.kafka_close import drop_producer, stop_producer
from hookbus.router.buses.kafka_send import deliver, pack, partition_counts, producer_options
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.placement import Placement
from hookbus.router.errors import BusFatal
from hookbus.router.types import Output

log = logging.getLogger("hookbus.bus")
T = TypeVar("T")

_NOT_IDEMPOTENT: Final = (UnknownError, UnsupportedVersionError, IncompatibleBrokerVersion)


class KafkaPublisher:
    """One producer for the process, replaced after any failure: a batch that was given up leaves
    a gap in an idempotent producer's sequence, and every later batch would be refused."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._placement = Placement()
        self._producer: AIOKafkaProducer | None = None
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
        producer = await self._started()
        counts = await self._attempt(producer, partition_counts(producer, outputs))
        limit = self._settings.max_message_bytes
        packed = pack(producer, self._placement, counts, outputs, limit)
        await self._attempt(producer, deliver(producer, packed))

    async def close(self) -> None:
        self._closed = True
        producer, self._producer = self._producer, None
        if producer is not None:
            await stop_producer(producer, self._settings.close_timeout)

    async def _started(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._closed:
                raise BusFatal("the bus is closed")
            if self._producer is None:
                self._producer = await self._start()
            return self._producer

    async def _start(self) -> AIOKafkaProducer:
        producer = self._build()
        try:
            async with asyncio.timeout(self._settings.request_timeout):
                await producer.start()
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

    async def _attempt(self, producer: AIOKafkaProducer, work: Awaitable[T]) -> T:
        try:
            return await bounded(work, self._settings.request_timeout, "a publish")
        except BaseException:
            await self._discard(producer)
            raise

    async def _discard(self, producer: AIOKafkaProducer) -> None:
        if self._producer is producer:
            self._producer = None
        await drop_producer(producer)
