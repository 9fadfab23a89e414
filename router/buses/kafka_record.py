"""Kafka's record as ours."""

from __future__ import annotations

from typing import Any

from hookbus.router.types import Record


def record_of(message: Any) -> Record:
    """A consumer record of aiokafka as a Record; a header without a value has an empty one."""
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        timestamp=message.timestamp,
        key=message.key,
        value=message.value,
        headers=tuple((name, bytes(value or b"")) for name, value in message.headers),
    )
