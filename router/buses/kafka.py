"""The Kafka bus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from types import MappingProxyType
from typing import Any

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_admin import Numbers, ensure_topics
from hookbus.router.buses.kafka_at_least_once import AtLeastOnce
from hookbus.router.buses.kafka_buffer import Buffer
from hookbus.router.buses.kafka_client import client_options, milliseconds
from hookbus.router.buses.kafka_exactly_once import ExactlyOnce
from hookbus.router.buses.kafka_fetch import fetch_records
from hookbus.router.buses.kafka_group import require_group
from hookbus.router.buses.kafka_producer import KafkaPublisher
from hookbus.router.buses.kafka_reader import Delivery, KafkaReader
from hookbus.router.buses.kafka_scan import POLL_MS, scan_topic
from hookbus.router.buses.kafka_settings import KafkaSettings, NewTopics
from hookbus.router.buses.kafka_transaction import require_transactions
from hookbus.router.errors import HookbusError
from hookbus.router.types import Output, Partition, Reader, Record


class KafkaBus:
    """Kafka, or a broker that speaks its protocol. At least once, or between topics exactly once
    if the settings say so and the broker has transactions; `create_topics` says how missing topics
    are made, without it they are refused.

    Every call ends within `settings.request_timeout` or raises BusUnavailable; BusFatal says that
    this process can't go on. `close()` ends within `settings.close_timeout` for each client.
    """

    def __init__(self, settings: KafkaSettings, *, create_topics: NewTopics | None = None) -> None:
        self._settings = settings
        self._create_topics = create_topics
        self._publisher = KafkaPublisher(settings)
        self._numbers: Numbers = {}
        self._readers: list[KafkaReader] = []

    async def open(
        self, topics: Sequence[str], changelogs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._numbers |= await ensure_topics(
            self._settings, topics, self._create_topics, changelogs
        )
        if topics:  # whoever only reads may not be authorized to have a producer
            await self._publisher.start()

    async def probe(self, group: str, topics: Sequence[str]) -> None:
        await self._admit(group, topics)
        await require_group(self._settings, group)

    async def reader(self, group: str, topics: Sequence[str]) -> Reader:
        await self._admit(group, topics)
        reader = self._reader(group)
        try:
            await reader.start(topics)
        except BaseException:
            await reader.close()
            raise
        self._readers.append(reader)
        return reader

    def _reader(self, group: str) -> KafkaReader:
        settings = self._settings
        consumer = AIOKafkaConsumer(**(self._reading() | self._membership(group)))

        def delivery(buffer: Buffer, report: Callable[[HookbusError | None], None]) -> Delivery:
            if settings.exactly_once:
                return ExactlyOnce(consumer, buffer, settings, group, report)
            return AtLeastOnce(consumer, buffer, self._publisher, settings)

        return KafkaReader(consumer, settings, delivery)

    async def publish(self, outputs: Sequence[Output]) -> None:
        await self._require({output.topic for output in outputs})
        await self._publisher.publish(outputs)

    async def scan(
        self, topic: str, *, follow: bool, partition: int | None = None
    ) -> AsyncIterator[Record]:
        await self._require([topic])
        consumer = AIOKafkaConsumer(**self._reading(POLL_MS))
        numbers = self._numbers[topic] if partition is None else (partition,)
        records = scan_topic(consumer, self._settings, topic, numbers, follow=follow)
        async with aclosing(records):
            async for record in records:
                yield record

    async def fetch(
        self, topic: str, partition: int, offsets: Collection[int]
    ) -> AsyncIterator[Record]:
        await self._require([topic])
        if not offsets or partition not in self._numbers[topic]:
            return
        consumer = AIOKafkaConsumer(**self._reading(POLL_MS))
        records = fetch_records(consumer, self._settings, Partition(topic, partition), offsets)
        async with aclosing(records):
            async for record in records:
                yield record

    async def close(self) -> None:
        for reader in self._readers:
            await reader.close()
        self._readers.clear()
        await self._publisher.close()

    async def _admit(self, group: str, topics: Sequence[str]) -> None:
        """What a member needs besides its group."""
        await self._require(topics)
        if self._settings.exactly_once:
            await require_transactions(self._settings, f"{group}.check")

    async def _require(self, topics: Sequence[str] | set[str]) -> None:
        unknown = [topic for topic in topics if topic not in self._numbers]
        if unknown:
            self._numbers |= await ensure_topics(self._settings, unknown, None)

    def _reading(self, fetch_max_wait_ms: int | None = None) -> dict[str, Any]:
        if fetch_max_wait_ms is None:
            fetch_max_wait_ms = milliseconds(self._settings.fetch_max_wait)
        return client_options(self._settings) | {
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
            "fetch_min_bytes": self._settings.fetch_min_bytes,
            "fetch_max_wait_ms": fetch_max_wait_ms,
            "fetch_max_bytes": self._settings.fetch_max_bytes,
            "max_partition_fetch_bytes": max(
                self._settings.max_partition_fetch_bytes, self._settings.max_message_bytes
            ),
        }

    def _membership(self, group: str) -> dict[str, Any]:
        # The broker answers a join when all members are back, which aiokafka doesn't allow for.
        answer = self._settings.request_timeout + 2 * self._settings.session_timeout
        return {
            "request_timeout_ms": milliseconds(answer),
            "group_id": group,
            "group_instance_id": self._settings.group_instance_id,
            "session_timeout_ms": milliseconds(self._settings.session_timeout),
            "heartbeat_interval_ms": milliseconds(min(3.0, self._settings.session_timeout / 3)),
        }
