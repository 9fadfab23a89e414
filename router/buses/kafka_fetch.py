"""Reads records of a Kafka partition at given offsets, without a group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import bounded
from hookbus.router.buses.kafka_close import stop_consumer
from hookbus.router.buses.kafka_record import record_of
from hookbus.router.buses.kafka_scan import POLL_MS
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.kafka_start import connect
from hookbus.router.errors import BusUnavailable
from hookbus.router.types import Partition, Record

_FAR: Final = 1000  # records between two wanted ones that are cheaper to read than to jump over


async def fetch_records(
    consumer: AIOKafkaConsumer, settings: KafkaSettings, home: Partition, offsets: Collection[int]
) -> AsyncGenerator[Record, None]:
    """The records that exist at `offsets`, in order. `consumer` is new and belongs to no group; it
    is closed at the end."""
    place = TopicPartition(*home)
    try:
        await connect(consumer, settings.request_timeout, "connecting to Kafka")
        consumer.assign([place])
        cursor = _Cursor(consumer, place, sorted(set(offsets)))
        moved = asyncio.get_running_loop().time()
        while cursor.wanted:
            fetching = consumer.getmany(place, timeout_ms=POLL_MS)
            fetched = await bounded(fetching, settings.request_timeout, "fetching")
            for message in cursor.pick(fetched.get(place, [])):
                yield record_of(message)
            position = consumer.position(place)
            cursor.pass_by(await bounded(position, settings.request_timeout, "fetching"))
            now = asyncio.get_running_loop().time()
            if fetched:
                moved = now
            elif now - moved > settings.request_timeout:
                raise BusUnavailable("fetching: the broker has stopped answering")
    finally:
        await stop_consumer(consumer, settings.close_timeout)


class _Cursor:
    """Moves a consumer from one wanted offset to the next."""

    def __init__(self, consumer: AIOKafkaConsumer, place: TopicPartition, wanted: list[int]):
        self._consumer = consumer
        self._place = place
        self.wanted = wanted[::-1]
        """Those still to come; the next one is the last."""
        self._jump()

    def _jump(self) -> None:
        self._sought = self.wanted[-1]
        self._consumer.seek(self._place, self._sought)

    def pick(self, messages: list[Any]) -> list[Any]:
        """Those that are wanted. What lies between two that came doesn't exist."""
        picked = []
        for message in messages:
            if message.offset < self._sought:
                # Beyond the end, and therefore set back to the start: nothing of it exists.
                self.wanted.clear()
                break
            self._drop_before(message.offset)
            if self.wanted and self.wanted[-1] == message.offset:
                picked.append(message)
                self.wanted.pop()
        return picked

    def pass_by(self, position: int) -> None:
        """Note where the consumer is, and jump if the next wanted one is far away."""
        if position < self._sought:
            self.wanted.clear()
        self._drop_before(position)
        end = self._end()
        if end is not None and self.wanted and self.wanted[-1] >= end:
            self.wanted.clear()
        if self.wanted and self.wanted[-1] - position > _FAR:
            self._jump()

    def _drop_before(self, offset: int) -> None:
        while self.wanted and self.wanted[-1] < offset:
            self.wanted.pop()

    def _end(self) -> int | None:
        """As the last answer told it, once there was one."""
        end: int | None = self._consumer.last_stable_offset(self._place)
        if end is None or end < 0:
            end = self._consumer.highwater(self._place)
        return end
