"""Topics that go with the benchmark that made them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import uuid4

from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]

from hookbus.router import build_bus
from hookbus.router.config import Config

PREFIX: Final = "hookbus-bench-"


def fresh() -> str:
    """A prefix for names that nobody has used before."""
    return PREFIX + uuid4().hex[:8]


@asynccontextmanager
async def removed_topics(bootstrap: str, config: Config) -> AsyncIterator[None]:
    """Deletes all topics of the configuration at the end."""
    try:
        yield
    finally:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.delete_topics([*build_bus.topics(config), *build_bus.changelogs(config)])
        finally:
            await admin.close()
