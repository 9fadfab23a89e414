"""Publishes to Kafka in whole batches, each acknowledged by all in-sync replicas."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from aiokafka import AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.errors import (  # type: ignore[import-untyped]
    IncompatibleBrokerVersion,
    KafkaError,
    UnknownError,
    UnsupportedVersionError,
)

from hookbus.router.buses.kafka_client import bounded, client_options, mapped, milliseconds
from hookbus.router.buses.kafka_close import drop_producer, stop_producer
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.placement import Placement
from hookbus.router.errors import BusFatal, OutputTooLarge
from hookbus.router.types import Output

log = logging.getLogger("hookbus.bus")

_BATCH_BYTES: Final = 256 * 1024
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
        self._check(outputs)
        producer = await self._started()
        try:
            await bounded(
                self._send(producer, outputs), self._settings.request_timeout, "a publish"
            )
        except BaseException:
            await self._discard(producer)
            raise

    async def close(self) -> None:
        self._closed = True
        producer, self._producer = self._producer, None
        if producer is not None:
            await stop_producer(producer, self._settings.close_timeout)

    def _check(self, outputs: Sequence[Output]) -> None:
        limit = self._settings.max_message_bytes
        for output in outputs:
            if output.size > limit:
                raise OutputTooLarge(
                    f"a record of {output.size} bytes for {output.topic}; the limit is {limit}"
                )

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
        compression = self._settings.compression
        return AIOKafkaProducer(
            **client_options(self._settings),
            acks="all",
            enable_idempotence=self._idempotent,
            compression_type=None if compression == "none" else compression,
            max_batch_size=min(_BATCH_BYTES, self._settings.max_message_bytes),
            max_request_size=self._settings.max_message_bytes,
            metadata_max_age_ms=milliseconds(60.0),
        )

    async def _send(self, producer: AIOKafkaProducer, outputs: Sequence[Output]) -> None:
        counts: dict[str, int] = {}
        homes: dict[tuple[str, int], list[Output]] = {}
        for output in outputs:
            topic = output.topic
            if topic not in counts:
                counts[topic] = len(await producer.partitions_for(topic))
            number = output.partition
            if number is None:
                number = self._placement.place(output.key, counts[topic])
            homes.setdefault((topic, number), []).append(output)
        await asyncio.gather(
            *(_send_batches(producer, TopicPartition(*home), part) for home, part in homes.items())
        )

    async def _discard(self, producer: AIOKafkaProducer) -> None:
        if self._producer is producer:
            self._producer = None
        await drop_producer(producer)


async def _send_batches(
    producer: AIOKafkaProducer, home: TopicPartition, outputs: Sequence[Output]
) -> None:
    """Fill batches and wait for all of them. The client has one batch of a partition in flight at
    a time, so their order is kept."""
    acknowledgements: list[Any] = []
    batch = producer.create_batch()
    for output in outputs:
        if not _appended(batch, output):
            acknowledgements.append(
                await producer.send_batch(batch, home.topic, partition=home.partition)
            )
            batch = producer.create_batch()
            _appended(batch, output)  # the first record of a batch always fits
    acknowledgements.append(await producer.send_batch(batch, home.topic, partition=home.partition))
    await asyncio.gather(*acknowledgements)


def _appended(batch: Any, output: Output) -> bool:
    return (
        batch.append(
            timestamp=None, key=output.key, value=output.value, headers=list(output.headers)
        )
        is not None
    )
