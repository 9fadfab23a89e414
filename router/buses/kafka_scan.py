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
from hookbus.router.buses.kafka_start import connect
from hookbus.router.errors import BusUnavailable
from hookbus.router.types import Record

POLL_MS: Final = 100  # how long an empty partition may hold up the end of a scan
_COMMIT: Final = 1.0  # how long a commit may take to become visible, in seconds


async def scan_topic(
    consumer: AIOKafkaConsumer,
    settings: KafkaSettings,
    topic: str,
    numbers: Sequence[int],
    *,
    follow: bool,
) -> AsyncGenerator[Record, None]:
    """All records up to the end as it was when the scan began, or without end if `follow`. A
    transaction that is open then is given a second to end: one that was committed just before has
    its records shown a moment later. `consumer` is new and belongs to no group; it is closed at
    the end."""
    try:
        await connect(consumer, settings.request_timeout, "connecting to Kafka")
        partitions = [TopicPartition(topic, number) for number in numbers]
        consumer.assign(partitions)
        ends: dict[TopicPartition, int] = {}
        unread = set(partitions)
        patient = asyncio.get_running_loop().time() + _COMMIT
        moved = asyncio.get_running_loop().time()
        while follow or unread:
            fetched = await bounded(
                consumer.getmany(timeout_ms=POLL_MS), settings.request_timeout, "scanning"
            )
            now = asyncio.get_running_loop().time()
            _note_ends(consumer, partitions, ends)
            for partition, messages in fetched.items():
                for message in messages:
                    if follow or message.offset < ends[partition]:
                        yield record_of(message)
            if follow:
                continue
            for partition in [one for one in unread if one in ends]:
                # The position passes over transaction markers, which no record ever shows.
                position = consumer.position(partition)
                reached = await bounded(position, settings.request_timeout, "scanning")
                held_up = now > patient and _is_held_up(consumer, partition, reached)
                if reached >= ends[partition] or held_up:
                    unread.discard(partition)
            if fetched:
                moved = now
            elif now - moved > settings.request_timeout:
                raise BusUnavailable("scanning: the broker has stopped answering")
    finally:
        await stop_consumer(consumer, settings.close_timeout)


def _note_ends(
    consumer: AIOKafkaConsumer,
    partitions: Sequence[TopicPartition],
    ends: dict[TopicPartition, int],
) -> None:
    """Take the end of each partition from the first answer about it. (Asking with ListOffsets
    instead isn't safe: Tansu 0.6 answers with the start of the last batch.)"""
    for partition in partitions:
        if partition not in ends:
            end = consumer.highwater(partition)
            if end is not None:
                ends[partition] = end


def _is_held_up(consumer: AIOKafkaConsumer, partition: TopicPartition, reached: int) -> bool:
    """Whether everything has been read that is not part of an open transaction or behind it."""
    stable = consumer.last_stable_offset(partition)
    return stable is not None and 0 <= stable <= reached
