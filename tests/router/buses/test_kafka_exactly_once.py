"""Transactions: what is committed, what is fenced, and what nobody ever sees."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition

from hookbus.router.buses.kafka import KafkaBus
from hookbus.router.buses.kafka_settings import NewTopics
from hookbus.router.errors import BusUnavailable, OutputTooLarge, StartupError
from hookbus.router.types import Output, Partition, Reader, Record, Settlement
from tests.brokers import Broker
from tests.router.buses.rig import (
    arrived,
    collect,
    done,
    fresh,
    numbered,
    numbers,
    scanned,
    until,
)
from tests.router.buses.test_kafka import opened, settings

pytestmark = pytest.mark.kafka

EXACTLY_ONCE: dict[str, object] = {"exactly_once": True, "request_timeout": 8.0}


@pytest.fixture
def apache(broker: Broker) -> Broker:
    if broker.name != "kafka":
        pytest.skip("needs HOOKBUS_TEST_BROKER=kafka")
    return broker


async def test_a_broker_without_transactions_is_refused(broker: Broker) -> None:
    """Tansu has none: the start says so instead of delivering twice."""
    if broker.name != "tansu":
        pytest.skip("needs HOOKBUS_TEST_BROKER=tansu")
    topic = fresh("in")
    async with opened(broker.bootstrap, topic, **EXACTLY_ONCE) as bus:
        with pytest.raises(StartupError, match=r"bus\.delivery: exactly-once needs"):
            await bus.reader(fresh("g"), [topic])


async def settled(reader: Reader, settlements: list[Settlement]) -> None:
    """Settle as a loop does, which repeats what the bus wasn't available for."""
    while True:
        try:
            await reader.settle(settlements)
        except BusUnavailable:
            await asyncio.sleep(0.1)  # as a loop backs off
        else:
            return


async def fence(broker: Broker, transactional_id: str) -> None:
    """Take a transactional id over, as another owner of its partition would."""
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap, transactional_id=transactional_id
    )
    await producer.start()
    await producer.stop()


async def test_nothing_is_seen_of_a_settlement_that_the_broker_refuses(apache: Broker) -> None:
    """One record of it is larger than the topic takes: its other outputs are aborted with it, and
    the same record can be settled with others."""
    topic, target = fresh("in"), fresh("out")
    limits = {**EXACTLY_ONCE, "max_message_bytes": 4 * 1024 * 1024}
    async with opened(apache.bootstrap, topic, target, **limits) as bus:
        await bus.publish(numbered(topic, 5, keys=1))
        reader = await bus.reader(fresh("g"), [topic])
        records = await collect(reader, 5)
        big = Output(target, b"k", b"x" * (2 * 1024 * 1024))
        with pytest.raises(OutputTooLarge):
            await reader.settle(
                [*done(records[:4], target), Settlement(records[4], (*numbered(target, 1), big))]
            )
        assert await scanned(bus, target) == []
        await settled(reader, done(records, target))
        assert numbers(await scanned(bus, target)) == [0, 1, 2, 3, 4]


async def test_a_lost_acknowledgement_is_no_second_copy(apache: Broker) -> None:
    """While nothing answers nobody knows whether the transaction was committed; afterwards the
    committed position tells, and the outputs are there once."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    short = {**EXACTLY_ONCE, "request_timeout": 2.0, "session_timeout": 20.0}
    async with opened(apache.bootstrap, topic, target, **short) as bus:
        await bus.publish(numbered(topic, 400))
        reader = await bus.reader(group, [topic])
        records = await collect(reader, 400, limit=400)
        failures = 0
        for moment in range(8):
            part = records[moment * 50 : moment * 50 + 50]
            settling = asyncio.create_task(reader.settle(done(part, target)))
            await asyncio.sleep(moment * 0.003)  # somewhere in the middle of it
            apache.pause()
            try:
                await settling
            except BusUnavailable:
                failures += 1
            finally:
                apache.resume()
            await settled(reader, done(part, target))
        assert failures > 0
        assert sorted(numbers(await scanned(bus, target))) == list(range(400))
        await reader.close()
        reader = await bus.reader(group, [topic])
        assert await reader.receive(10, 1.0) == []


async def test_a_fenced_member_that_is_still_one_goes_on(apache: Broker) -> None:
    """Whoever fenced it has settled nothing: the same settlement, repeated, is complete, within
    the same assignment."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    async with opened(apache.bootstrap, topic, target, **EXACTLY_ONCE) as bus:
        await bus.publish(numbered(topic, 20, keys=1))
        reader = await bus.reader(group, [topic])
        records = await collect(reader, 20)
        home = records[0].home
        before = reader.assignment(home)
        await reader.settle(done(records[:10], target))
        await fence(apache, f"{group}.{home.topic}.{home.number}")
        with pytest.raises(BusUnavailable, match="fenced"):
            await reader.settle(done(records[10:], target))
        await reader.settle(done(records[10:], target))
        assert reader.assignment(home) is before
        assert numbers(await scanned(bus, target)) == list(range(20))


async def test_what_another_owner_has_settled_ends_the_assignment(apache: Broker) -> None:
    """A member that was overtaken without noticing drops what it has in hand and reads on from
    where the other one is."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    async with opened(apache.bootstrap, topic, target, **EXACTLY_ONCE) as bus:
        await bus.publish(numbered(topic, 20, keys=1))
        reader = await bus.reader(group, [topic])
        records = await collect(reader, 10)
        home = records[0].home
        before = reader.assignment(home)
        await overtake(apache, group, home, 15)
        await settled(reader, done(records, target))
        assert await scanned(bus, target) == []
        assert reader.assignment(home) not in (None, before)
        again = await collect(reader, 5)
        assert numbers(again) == [15, 16, 17, 18, 19]
        await settled(reader, done([*records, *again], target))
        assert numbers(await scanned(bus, target)) == [15, 16, 17, 18, 19]


async def overtake(broker: Broker, group: str, home: Partition, position: int) -> None:
    """Commit a position of a partition as another owner would."""
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap,
        transactional_id=f"{group}.{home.topic}.{home.number}",
    )
    await producer.start()
    await producer.begin_transaction()
    await producer.send_offsets_to_transaction({TopicPartition(*home): position}, group)
    await producer.commit_transaction()
    await producer.stop()


async def test_a_new_owner_waits_for_what_the_former_has_open(apache: Broker) -> None:
    """The former owner died with an open transaction: it is aborted before the new one reads
    anything, so the records come again and its outputs never appear."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    async with opened(apache.bootstrap, topic, target, **EXACTLY_ONCE) as bus:
        await bus.publish(numbered(topic, 5, keys=1))
        (home,) = {record.home for record in await scanned(bus, topic)}
        former = AIOKafkaProducer(
            bootstrap_servers=apache.bootstrap,
            transactional_id=f"{group}.{home.topic}.{home.number}",
        )
        await former.start()
        await former.begin_transaction()
        await former.send_and_wait(target, b"99", b"k", partition=0)
        await former.send_offsets_to_transaction({TopicPartition(*home): 5}, group)
        reader = await bus.reader(group, [topic])
        records = await collect(reader, 5)
        await reader.settle(done(records, target))
        assert numbers(await scanned(bus, target)) == [0, 1, 2, 3, 4]
        await asyncio.wait([asyncio.ensure_future(former.stop())])


async def test_a_settlement_without_outputs_moves_the_group_too(apache: Broker) -> None:
    """As a sink's do, which has delivered elsewhere."""
    topic, group = fresh("in"), fresh("g")
    async with opened(apache.bootstrap, topic, **EXACTLY_ONCE) as bus:
        await bus.publish(numbered(topic, 20))
        reader = await bus.reader(group, [topic])
        await reader.settle(done(await collect(reader, 20)))
        await reader.close()
        reader = await bus.reader(group, [topic])
        assert await reader.receive(10, 1.0) == []


async def test_a_changelog_is_part_of_the_transaction(apache: Broker) -> None:
    """The state that is restored is the one of the committed position."""
    topic, changelog = fresh("in"), fresh("log")
    async with opened(apache.bootstrap, **EXACTLY_ONCE) as bus:
        await bus.open([topic], {changelog: topic})
        await bus.publish(numbered(topic, 4, keys=1))
        reader = await bus.reader(fresh("g"), [topic])
        records = await collect(reader, 4)

        def change(record: Record, value: bytes | None) -> Settlement:
            return Settlement(
                record, (Output(changelog, b"key", value, partition=record.partition),)
            )

        refused = change(records[2], b"x" * 2 * 1024 * 1024)
        await reader.settle([change(records[0], b"a"), change(records[1], b"b")])
        with pytest.raises(OutputTooLarge):
            await reader.settle([refused])
        scan = bus.scan(changelog, follow=False, partition=records[0].partition)
        assert [record.value async for record in scan][-1] == b"b"


async def test_a_restart_in_the_middle_neither_loses_nor_repeats(apache: Broker) -> None:
    """A broker that is killed and comes back leaves every record copied once."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    short = {**EXACTLY_ONCE, "request_timeout": 5.0}
    async with opened(apache.bootstrap, topic, target, **short) as bus:
        await bus.publish(numbered(topic, 3000, keys=50))
        reader = await bus.reader(group, [topic])
        copied: set[int] = set()

        async def copy() -> None:
            while True:
                try:
                    records = await reader.receive(40, 1.0)
                except BusUnavailable:
                    continue
                await settled(reader, done(records, target))
                copied.update(numbers(records))

        loop = asyncio.create_task(copy())
        try:
            await until(lambda: len(copied) > 200)
            await asyncio.to_thread(apache.kill)
            await asyncio.to_thread(apache.start)
            await until(lambda: arrived(bus, target, 3000), 90.0, "copying everything")
        finally:
            loop.cancel()
            await asyncio.wait([loop])
        assert sorted(numbers(await scanned(bus, target))) == list(range(3000))


async def test_closing_does_not_wait_for_a_frozen_broker(apache: Broker) -> None:
    """The end is bounded, with a transaction under way or without."""
    topic, target = fresh("in"), fresh("out")
    bus = KafkaBus(settings(apache.bootstrap, exactly_once=True), create_topics=NewTopics(4, 1))
    await bus.open([topic, target])
    await bus.publish(numbered(topic, 40))
    reader = await bus.reader(fresh("g"), [topic])
    records = await collect(reader, 40)
    apache.pause()
    try:
        settling = asyncio.create_task(reader.settle(done(records, target)))
        await bus.close()
        with pytest.raises(BusUnavailable):
            await settling
    finally:
        apache.resume()
