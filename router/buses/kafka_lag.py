"""How far a group is behind on Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_buffer import Held
from hookbus.router.types import Partition


async def measure_lag(
    consumer: AIOKafkaConsumer, held: Mapping[Partition, Held]
) -> dict[Partition, int]:
    """High watermark - max(committed, log start) for each partition; transaction markers at the
    end, which nobody will ever receive, don't count once everything before them is settled."""
    partitions = [TopicPartition(*home) for home in held]
    # Both at once: each waits behind the fetch that is under way.
    ends, starts = await asyncio.gather(
        consumer.end_offsets(partitions), consumer.beginning_offsets(partitions)
    )
    found = {}
    for home, one in held.items():
        partition = TopicPartition(*home)
        if one.committed is None:
            one.committed = await consumer.committed(partition)
        passed = max(one.committed or 0, starts[partition])
        if not one.mark.outstanding and not one.buffered:
            passed = max(passed, await consumer.position(partition))
        # Tansu 0.6 lists the start of the last batch as the end; a fetch tells the truth.
        end = max(ends[partition], consumer.highwater(partition) or 0)
        found[home] = max(0, end - passed)
    return found
