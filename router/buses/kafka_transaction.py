"""Transactional producers: one transactional id for each input partition of a group.

Starting one fences the former holder of the id and ends its transaction. aiokafka's offset commit
in a transaction carries no group generation, so this is what keeps a former owner out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from aiokafka.errors import (  # type: ignore[import-untyped]
    IncompatibleBrokerVersion,
    InvalidTransactionTimeout,
    KafkaError,
    UnknownError,
    UnsupportedVersionError,
)

from hookbus.router.buses.kafka_client import mapped, milliseconds
from hookbus.router.buses.kafka_close import drop_producer
from hookbus.router.buses.kafka_send import producer_options, send
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.buses.kafka_start import start
from hookbus.router.buses.placement import Placement
from hookbus.router.errors import StartupError
from hookbus.router.types import Output

_BACKOFF: Final = 0.02  # seconds


async def require_transactions(settings: KafkaSettings, transactional_id: str) -> None:
    """Start a transactional producer and close it. Raises StartupError if the broker has no
    transactions or none that may take as long as the settings say, BusUnavailable, or BusFatal."""
    try:
        producer = await _started(settings, transactional_id)
    except (UnknownError, UnsupportedVersionError, IncompatibleBrokerVersion) as error:
        raise StartupError(
            "bus.delivery: exactly-once needs a broker with transactions, which this one lacks"
            f" ({type(error).__name__}); use at-least-once"
        ) from error
    except InvalidTransactionTimeout as error:
        raise StartupError(
            f"bus.kafka.request_timeout: transactions of {settings.transaction_timeout:g} s, twice"
            " as long, are more than the broker's transaction.max.timeout.ms allows"
        ) from error
    except (KafkaError, OSError) as error:
        raise mapped(error, "a transactional producer's start") from error
    await drop_producer(producer)


async def fencing_producer(settings: KafkaSettings, transactional_id: str) -> AIOKafkaProducer:
    """A producer that alone holds the id now; what its former holder had open is ended, and that
    is visible. Raises BusUnavailable or BusFatal."""
    try:
        return await _started(settings, transactional_id)
    except (KafkaError, OSError) as error:
        raise mapped(error, "a transactional producer's start") from error


async def transact(
    producer: AIOKafkaProducer,
    placement: Placement,
    group: str,
    outputs: Sequence[Output],
    offsets: dict[TopicPartition, OffsetAndMetadata],
) -> None:
    """Outputs and offsets in one transaction. Raises aiokafka's errors; whether it was committed
    is open then."""
    _refuse_dead(producer)
    await producer.begin_transaction()
    work = [producer.send_offsets_to_transaction(offsets, group)]
    if outputs:
        work.append(send(producer, placement, outputs))
    await asyncio.gather(*work)
    _refuse_dead(producer)
    await producer.commit_transaction()


async def _started(settings: KafkaSettings, transactional_id: str) -> AIOKafkaProducer:
    producer = AIOKafkaProducer(
        **producer_options(settings),
        transactional_id=transactional_id,
        # A transaction right after another one is refused until the markers of that are written.
        retry_backoff_ms=milliseconds(_BACKOFF),
        transaction_timeout_ms=milliseconds(settings.transaction_timeout),
    )
    try:
        async with asyncio.timeout(settings.request_timeout):
            await start(producer)  # which waits out CONCURRENT_TRANSACTIONS
    except BaseException:
        await drop_producer(producer)
        raise
    return producer


def _refuse_dead(producer: AIOKafkaProducer) -> None:
    """aiokafka answers with an AssertionError to whoever uses a producer that was fenced."""
    sender = producer._sender.sender_task
    if sender.done():
        error = None if sender.cancelled() else sender.exception()
        raise error or KafkaError("the producer has ended")
