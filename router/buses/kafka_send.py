"""Turns outputs into whole batches, and sends them through a producer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import client_options, milliseconds, seen
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.placement import Placement
from hookbus.router.errors import OutputTooLarge
from hookbus.router.types import Output

_CLOSE: Final = 8
"""A record whose bytes on the wire are less than this part of a limit is below it by any count."""

Packed = dict[TopicPartition, list[Any]]
"""Batches by the partition that they go to."""


def producer_options(settings: KafkaSettings) -> dict[str, Any]:
    """The keyword arguments that every producer takes."""
    return client_options(settings) | {
        "acks": "all",
        "compression_type": None if settings.compression == "none" else settings.compression,
        "max_batch_size": min(settings.batch_bytes, settings.max_message_bytes),
        "linger_ms": milliseconds(settings.linger),
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
    counts = await partition_counts(producer, outputs)
    await deliver(producer, pack(producer, placement, counts, outputs))


async def partition_counts(producer: AIOKafkaProducer, outputs: Iterable[Output]) -> dict[str, int]:
    """How many partitions each topic of the outputs has."""
    topics = {output.topic for output in outputs}
    return {topic: len(await producer.partitions_for(topic)) for topic in topics}


def pack(
    producer: AIOKafkaProducer,
    placement: Placement,
    counts: Mapping[str, int],
    outputs: Sequence[Output],
    limit: int | None = None,
) -> Packed:
    """The outputs in whole batches, in order within each partition. Raises OutputTooLarge if one of
    them has more than `limit` bytes."""
    homes = _placed(outputs, counts, placement)
    return {home: _batches(producer, part, limit) for home, part in homes.items()}


async def deliver(producer: AIOKafkaProducer, packed: Packed) -> None:
    """Append batches; all are acknowledged on return. Raises aiokafka's errors."""
    await asyncio.gather(*(_send(producer, home, part) for home, part in packed.items()))


def _placed(
    outputs: Sequence[Output], counts: Mapping[str, int], placement: Placement
) -> dict[TopicPartition, list[Output]]:
    homes: dict[TopicPartition, list[Output]] = {}
    known: dict[tuple[str, bytes | None, int | None], list[Output]] = {}  # keys are often repeated
    for output in outputs:
        topic, key, number = output.topic, output.key, output.partition
        home = known.get((topic, key, number))
        if home is None:
            place = placement.place(key, counts[topic]) if number is None else number
            home = homes.setdefault(TopicPartition(topic, place), [])
            if key is not None or number is not None:  # those without go round in turn
                known[topic, key, number] = home
        home.append(output)
    return homes


def _batches(producer: AIOKafkaProducer, outputs: Sequence[Output], limit: int | None) -> list[Any]:
    batches = [producer.create_batch()]
    for output in outputs:
        added = _appended(batches[-1], output)
        if added is None:
            batches.append(producer.create_batch())
            added = _appended(batches[-1], output)  # the first record of a batch always fits
        # Adding up a record costs as much as appending it: only where it may be too large.
        if limit is not None and added.size * _CLOSE > limit:
            check_sizes([output], limit)
    return batches


def _appended(batch: Any, output: Output) -> Any:
    """What the client says of the record in the batch; None if the batch is full."""
    headers = list(output.headers)
    return batch.append(timestamp=None, key=output.key, value=output.value, headers=headers)


async def _send(producer: AIOKafkaProducer, home: TopicPartition, batches: Sequence[Any]) -> None:
    """The client has one batch of a partition in flight at a time, so their order is kept."""
    acknowledgements = []
    for batch in batches:
        acknowledged = await producer.send_batch(batch, home.topic, partition=home.partition)
        acknowledged.add_done_callback(seen)  # the next one may fail before this is awaited
        acknowledgements.append(acknowledged)
    await asyncio.gather(*acknowledgements)
