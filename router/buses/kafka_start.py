"""Starts aiokafka clients so that a start that is given up leaves nothing open."""

from __future__ import annotations

import asyncio
from traceback import walk_tb
from typing import Any

from aiokafka.conn import AIOKafkaConnection  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import bounded


async def connect(client: Any, seconds: float, what: str) -> None:
    """Start `client` under a deadline. Raises BusUnavailable or BusFatal, saying what was tried."""
    await bounded(start(client), seconds, what)


async def start(client: Any) -> None:
    """Start `client`, which may be cancelled. Raises aiokafka's errors."""
    try:
        await client.start()
    except asyncio.CancelledError as cancelled:
        _hang_up(cancelled)
        raise


def _hang_up(cancelled: BaseException) -> None:
    """Close the connections in whose middle a start was cancelled: aiokafka's bootstrap (0.14)
    closes its own after an error only, and nothing else refers to it."""
    for frame, _ in walk_tb(cancelled.__traceback__):
        for found in frame.f_locals.values():
            if isinstance(found, AIOKafkaConnection):
                found.close()
