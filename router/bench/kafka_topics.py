"""Topics that go with the benchmark that made them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import uuid4

from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]

from hookbus.router import build_bus
from hookbus.router.buses.kafka_client import bounded
from hookbus.router.configuration.config import Config

_PREFIX: Final = "hookbus-bench-"
_PATIENCE: Final = 30.0


def fresh() -> str:
    """A prefix for names that nobody has used before."""
    return _PREFIX + uuid4().hex[:8]


@asynccontextmanager
async def removed_topics(bootstrap: str, config: Config) -> AsyncIterator[None]:
    """Deletes all topics of the configuration at the end. Raises BusUnavailable if nobody answers
    there."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await bounded(admin.start(), _PATIENCE, "connecting to Kafka")
        try:
            yield
        finally:
            topics = [*build_bus.topics(config), *build_bus.changelogs(config)]
            await bounded(admin.delete_topics(topics), _PATIENCE, "deleting topics")
    finally:
        await admin.close()
