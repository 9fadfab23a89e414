"""How far a group is behind on Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.errors import IllegalStateError  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_buffer import Held
from hookbus.router.types import Partition


async def measure_lag(
    consumer: AIOKafkaConsumer, held: Mapping[Partition, Held]
) -> dict[Partition, int]:
    """High watermark - max(committed, log start) for each partition; transaction markers at the
    end, which nobody will ever receive, don't count once everything before them is settled. Those
    that are taken away before the broker has answered are left out."""
    partitions = [TopicPartition(*home) for home in held]
    # Both at once: each waits behind the fetch that is under way.
    ends, starts = await asyncio.gather(
        consumer.end_offsets(partitions), consumer.beginning_offsets(partitions)
    )
    found = {}
    for home, one in held.items():
        partition = TopicPartition(*home)
        with suppress(IllegalStateError):  # taken away meanwhile
            passed = max(await _passed(consumer, partition, one), starts[partition])
            # Tansu 0.6 lists the start of the last batch as the end; a fetch tells the truth.
            end = max(ends[partition], _fetched_end(consumer, partition))
            found[home] = max(0, end - passed)
    return found


async def _passed(consumer: AIOKafkaConsumer, partition: TopicPartition, held: Held) -> int:
    """What the group has settled. Raises IllegalStateError."""
    if held.committed is None:
        held.committed = await consumer.committed(partition)
    passed = held.committed or 0
    if not held.mark.outstanding and not held.buffered:
        passed = max(passed, await consumer.position(partition))
    return passed


def _fetched_end(consumer: AIOKafkaConsumer, partition: TopicPartition) -> int:
    """As the last fetch told it, 0 before the first one. Raises IllegalStateError."""
    if partition not in consumer.assignment():  # aiokafka asserts that it is
        raise IllegalStateError
    return consumer.highwater(partition) or 0
