"""Reads a Kafka topic from the oldest record, without a group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import bounded
from hookbus.router.buses.kafka_close import stop_consumer
from hookbus.router.buses.kafka_record import record_of
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.errors import BusUnavailable
from hookbus.router.types import Record

_POLL_MS: Final = 500


async def scan_topic(
    consumer: AIOKafkaConsumer,
    settings: KafkaSettings,
    topic: str,
    numbers: Sequence[int],
    *,
    follow: bool,
) -> AsyncGenerator[Record, None]:
    """All records up to the end as it was when the scan began, or without end if `follow`.
    `consumer` is new and belongs to no group; it is closed at the end."""
    try:
        await bounded(consumer.start(), settings.request_timeout, "connecting to Kafka")
        partitions = [TopicPartition(topic, number) for number in numbers]
        consumer.assign(partitions)
        ends = await bounded(
            consumer.end_offsets(partitions), settings.request_timeout, "looking for the end"
        )
        starts = await bounded(
            consumer.beginning_offsets(partitions),
            settings.request_timeout,
            "looking for the start",
        )
        open_ends = {one for one in partitions if follow or ends[one] > starts[one]}
        progress = asyncio.get_running_loop().time()
        while open_ends:
            fetched = await bounded(
                consumer.getmany(timeout_ms=_POLL_MS), settings.request_timeout, "scanning"
            )
            for partition, messages in fetched.items():
                for message in messages:
                    if follow or message.offset < ends[partition]:
                        yield record_of(message)
            if follow:
                continue
            # The position passes over transaction markers, which no record ever shows.
            reached = {
                one
                for one in open_ends
                if await bounded(consumer.position(one), settings.request_timeout, "scanning")
                >= ends[one]
            }
            open_ends -= reached
            now = asyncio.get_running_loop().time()
            if fetched or reached:
                progress = now
            elif now - progress > settings.request_timeout:
                raise BusUnavailable("scanning: the broker has stopped answering")
    finally:
        await stop_consumer(consumer, settings.close_timeout)
