"""Whether a consumer group may be joined."""

from __future__ import annotations

from typing import Final

from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]
from aiokafka.errors import (  # type: ignore[import-untyped]
    GroupAuthorizationFailedError,
    for_code,
)
from aiokafka.protocol.group import HeartbeatRequest  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import bounded, client_options
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.kafka_start import connect

_WHAT: Final = "joining a group"


async def require_group(settings: KafkaSettings, group: str) -> None:
    """Raises BusFatal if this user may not join `group`, BusUnavailable if the cluster doesn't say
    so now. Nobody joins."""
    admin = AIOKafkaAdminClient(**client_options(settings))
    try:
        await connect(admin, settings.request_timeout, _WHAT)
        await bounded(_ask(admin, group), settings.request_timeout, _WHAT)
    finally:
        await bounded(admin.close(), settings.close_timeout, "closing")


async def _ask(admin: AIOKafkaAdminClient, group: str) -> None:
    """With a heartbeat, which takes the same right as a join, of no member: whoever has the right
    is told that there is no such member."""
    try:
        coordinator = await admin.find_coordinator(group)
    except GroupAuthorizationFailedError as error:
        raise GroupAuthorizationFailedError(group) from error
    answer = await admin._client.send(coordinator, HeartbeatRequest(group, -1, ""))
    if for_code(answer.error_code) is GroupAuthorizationFailedError:
        raise GroupAuthorizationFailedError(group)
