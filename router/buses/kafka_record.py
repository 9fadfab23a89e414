"""Kafka's record as ours."""

from __future__ import annotations

from typing import Any

from hookbus.router.types import Record


def record_of(message: Any) -> Record:
    """A consumer record of aiokafka as a Record; a header without a value has an empty one."""
    headers = message.headers
    return Record(
        message.topic,
        message.partition,
        message.offset,
        message.timestamp,
        message.key,
        message.value,
        tuple([(name, bytes(value or b"")) for name, value in headers]) if headers else (),
    )
