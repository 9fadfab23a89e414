"""Ends aiokafka clients within a bound, whether or not the broker is still there.

Their `stop()` waits for the broker, for ever if need be (aiokafka #1101). After the deadline the
connections are closed without it: a group member then leaves when its session times out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import seen

log = logging.getLogger("hookbus.bus")

_FORCED: Final = 1.0  # seconds for each step that no longer needs the broker


async def stop_consumer(consumer: AIOKafkaConsumer, seconds: float) -> None:
    """Leave the group and close; commits nothing."""
    if await _within(consumer.stop(), seconds):
        return
    log.warning("a Kafka consumer did not stop in time; its connections are closed")
    coordinator = getattr(consumer, "_coordinator", None)
    for name in ("_coordination_task", "_heartbeat_task", "_commit_refresh_task"):
        await _cancel(getattr(coordinator, name, None))
    fetcher = getattr(consumer, "_fetcher", None)
    if fetcher is not None:
        await _within(fetcher.close(), _FORCED)
    await _within(consumer._client.close(), _FORCED)


async def stop_producer(producer: AIOKafkaProducer, seconds: float) -> None:
    """Close; what is not acknowledged by now counts as not published."""
    if await _within(producer.stop(), seconds):
        return
    log.warning("a Kafka producer did not stop in time; its connections are closed")
    await drop_producer(producer)


async def abandon_producer(producer: AIOKafkaProducer) -> None:
    """Abort the open transaction, if the broker does so at once, and close. Otherwise the next
    holder of the transactional id ends it, or its timeout does."""
    if producer._txn_manager.is_in_transaction() and not producer._sender.sender_task.done():
        _ask_for_nothing(producer)
        await _within(producer.abort_transaction(), _FORCED)
    await drop_producer(producer)


async def drop_producer(producer: AIOKafkaProducer) -> None:
    """Close without waiting for what is in flight: nobody will ask for its outcome."""
    producer._closed = True
    accumulator = producer._message_accumulator
    # Those to be sent again have left these, where their end expects them.
    accumulator._pending_batches.update(*accumulator._batches.values())
    _ask_for_nothing(producer)
    accumulator.fail_all(KafkaError("the producer was given up"))
    await _cancel(*_tasks_of(producer._sender))
    await _within(producer.client.close(), _FORCED)


def _ask_for_nothing(producer: AIOKafkaProducer) -> None:
    """Asyncio complains of errors that nobody asks for: those of batches and of a transaction."""
    for batch in producer._message_accumulator._pending_batches:
        batch.future.add_done_callback(seen)
        batch._drain_waiter.add_done_callback(seen)
    transactions = producer._txn_manager
    if transactions is not None and transactions._transaction_waiter is not None:
        transactions._transaction_waiter.add_done_callback(seen)
        for *_, told in transactions._pending_txn_offsets:
            told.add_done_callback(seen)


def _tasks_of(sender: Any) -> list[asyncio.Task[Any]]:
    """A sender's task, and those of the requests that it has begun. It waits for these when it is
    cancelled, and they ask again and again and connect anew; only their frames tell whose they
    are."""
    frames = {task: getattr(task.get_coro(), "cr_frame", None) for task in asyncio.all_tasks()}
    return [
        task
        for task, frame in frames.items()
        if frame is not None and frame.f_locals.get("self") is sender
    ]


async def _within(work: Coroutine[Any, Any, Any], seconds: float) -> bool:
    """Whether `work` ended in time. An error is an end as well: there is nobody to retry for. It
    runs as a task of its own, because aiokafka awaits tasks that it has cancelled itself, which
    must not look like our own cancellation."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
    finally:
        await _cancel(task)
    if not task.cancelled() and task.done() and (error := task.exception()) is not None:
        log.info("while closing: %s", type(error).__name__)
    return bool(done)


async def _cancel(*tasks: asyncio.Task[Any] | None) -> None:
    running = [task for task in tasks if task is not None and not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=_FORCED)
