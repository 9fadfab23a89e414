"""Whether the group still takes this process for a member."""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import bounded
from hookbus.router.buses.kafka_settings import KafkaSettings


async def is_member(consumer: AIOKafkaConsumer, settings: KafkaSettings) -> bool:
    """Ask with a heartbeat; one that is refused makes aiokafka rejoin. Raises BusUnavailable."""
    coordinator = consumer._coordinator
    await bounded(coordinator.ensure_coordinator_known(), settings.request_timeout, "a heartbeat")
    await bounded(coordinator._do_heartbeat(), settings.request_timeout, "a heartbeat")
    return has_identity(consumer)


def has_identity(consumer: AIOKafkaConsumer) -> bool:
    """Whether aiokafka has not been told that the group doesn't know this member."""
    return bool(consumer._coordinator.member_id != "")
