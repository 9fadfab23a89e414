"""The measurement of lag while partitions come and go."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from hookbus.router.buses.kafka_buffer import Held
from hookbus.router.buses.kafka_lag import measure_lag
from hookbus.router.types import Partition, Record
from tests.brokers import Broker
from tests.router.buses.rig import fresh, numbered
from tests.router.buses.test_kafka import opened

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("in_hand", [0, 1])
async def test_a_partition_that_is_lost_while_the_broker_is_asked_is_left_out(
    broker: Broker, in_hand: int
) -> None:
    """With records of it in hand or without; of the one that stays the lag is told."""
    topic = fresh("in")
    stays, goes = Partition(topic, 0), Partition(topic, 1)
    async with opened(broker.bootstrap, topic) as bus:
        await bus.publish(numbered(topic, 20))
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(*stays), TopicPartition(*goes)])
        held = {home: _held(home, in_hand) for home in (stays, goes)}
        broker.pause()
        try:
            measuring = asyncio.create_task(measure_lag(consumer, held))
            await asyncio.sleep(0)  # now it asks
            consumer.assign([TopicPartition(*stays)])
        finally:
            broker.resume()
        assert (await measuring).keys() == {stays}
    finally:
        await consumer.stop()


def _held(home: Partition, count: int) -> Held:
    """A partition of which that many records are in hand, and nothing is settled."""
    held = Held()
    held.committed = 0
    held.mark.take([Record(*home, offset, 0, None, b"") for offset in range(count)])
    return held
