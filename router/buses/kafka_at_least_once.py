"""Settles at least once: publish, wait for every acknowledgement, then commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.errors import (  # type: ignore[import-untyped]
    CommitFailedError,
    IllegalStateError,
    KafkaError,
)

from hookbus.router.buses.kafka_buffer import Buffer
from hookbus.router.buses.kafka_client import mapped
from hookbus.router.buses.kafka_producer import KafkaPublisher
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.types import Partition, Settlement

log = logging.getLogger("hookbus.bus")


class AtLeastOnce:
    """What a reader does with its settlements unless the bus is to be exactly-once."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        buffer: Buffer,
        publisher: KafkaPublisher,
        settings: KafkaSettings,
    ) -> None:
        self._consumer = consumer
        self._buffer = buffer
        self._publisher = publisher
        self._settings = settings

    async def begin(self, homes: Collection[Partition]) -> None:
        """Nothing has to be known of a former owner: what it didn't commit comes again."""

    async def settle(self, settlements: Sequence[Settlement]) -> bool:
        works, outputs = self._buffer.works(settlements)
        if not works:
            return True
        await self._publisher.publish(outputs)
        reached: dict[TopicPartition, int | None] = {}
        for work in works:
            position = work.position
            # Taken away meanwhile: the commit would move somebody else's position.
            if self._buffer.still(work.home, work.held) and position not in (
                None,
                work.held.committed,
            ):
                reached[TopicPartition(*work.home)] = position
        if reached and not await self._commit(reached):
            return not any(self._buffer.still(work.home, work.held) for work in works)
        for work in works:
            work.held.committed = reached.get(TopicPartition(*work.home), work.held.committed)
            work.done()
        return True

    async def end(self) -> None:
        """There is nothing to give back."""

    async def _commit(self, reached: Mapping[TopicPartition, int | None]) -> bool:
        try:
            async with asyncio.timeout(self._settings.request_timeout):
                await self._consumer.commit(dict(reached))
        except (CommitFailedError, IllegalStateError):
            log.info("a commit came after the assignment had ended; its records come again")
            return False
        except (KafkaError, OSError) as error:
            raise mapped(error, "a commit") from error
        return True
