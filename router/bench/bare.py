"""What the buses are compared with: loops that copy bytes three times and do nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]

POLL_MS: Final = 500

Row = tuple[int, int, bytes, bytes, bytes]
"""As the embedded bus stores a record: id, timestamp, key, value, headers."""


async def copy_by_send(
    consumer: AIOKafkaConsumer, producer: AIOKafkaProducer, targets: Sequence[str], events: int
) -> None:
    """Each message with `send`, to every target; then wait for all, and commit. At least once."""
    while events > 0:
        fetched = await consumer.getmany(timeout_ms=POLL_MS)
        sent = [
            await producer.send(target, message.value, message.key)
            for messages in fetched.values()
            for message in messages
            for target in targets
        ]
        events -= sum(map(len, fetched.values()))
        await producer.flush()
        for one in sent:
            one.result()
        await consumer.commit()


async def copy_by_batch(
    consumer: AIOKafkaConsumer, producer: AIOKafkaProducer, targets: Sequence[str], events: int
) -> None:
    """The messages of each partition in whole batches, to every target; then wait for all, and
    commit. At least once."""
    while events > 0:
        fetched = await consumer.getmany(timeout_ms=POLL_MS)
        sent: list[Any] = []
        for home, messages in fetched.items():
            for target in targets:
                batch = producer.create_batch()
                for message in messages:
                    if not _appended(batch, message):
                        sent.append(
                            await producer.send_batch(batch, target, partition=home.partition)
                        )
                        batch = producer.create_batch()
                        _appended(batch, message)
                sent.append(await producer.send_batch(batch, target, partition=home.partition))
            events -= len(messages)
        await asyncio.gather(*sent)
        await consumer.commit()


def _appended(batch: Any, message: Any) -> bool:
    return batch.append(key=message.key, value=message.value, timestamp=None) is not None


def insert(connection: sqlite3.Connection, transactions: Sequence[Sequence[Row]]) -> None:
    """Plain inserts of ready rows, a transaction each."""
    for rows in transactions:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
