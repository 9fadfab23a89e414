"""Turns outputs into whole batches, and sends them through a producer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import client_options, milliseconds
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.placement import Placement
from hookbus.router.errors import OutputTooLarge
from hookbus.router.types import Output

_BATCH_BYTES: Final = 256 * 1024


def producer_options(settings: KafkaSettings) -> dict[str, Any]:
    """The keyword arguments that every producer takes."""
    return client_options(settings) | {
        "acks": "all",
        "compression_type": None if settings.compression == "none" else settings.compression,
        "max_batch_size": min(_BATCH_BYTES, settings.max_message_bytes),
        "max_request_size": settings.max_message_bytes,
        "metadata_max_age_ms": milliseconds(60.0),
    }


def check_sizes(outputs: Iterable[Output], limit: int) -> None:
    """Raises OutputTooLarge if one of the outputs has more than `limit` bytes."""
    for output in outputs:
        if output.size > limit:
            raise OutputTooLarge(
                f"a record of {output.size} bytes for {output.topic}; the limit is {limit}"
            )


async def send(producer: AIOKafkaProducer, placement: Placement, outputs: Sequence[Output]) -> None:
    """Append in order within each partition; all are acknowledged on return. Raises aiokafka's
    errors."""
    counts: dict[str, int] = {}
    homes: dict[tuple[str, int], list[Output]] = {}
    for output in outputs:
        topic = output.topic
        if topic not in counts:
            counts[topic] = len(await producer.partitions_for(topic))
        number = output.partition
        if number is None:
            number = placement.place(output.key, counts[topic])
        homes.setdefault((topic, number), []).append(output)
    await asyncio.gather(
        *(_send_batches(producer, TopicPartition(*home), part) for home, part in homes.items())
    )


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
