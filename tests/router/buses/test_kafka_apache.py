"""What only Apache Kafka has: transactions, logins, and data that outlive a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.errors import KafkaError

from hookbus.router.buses.kafka import KafkaBus
from hookbus.router.buses.kafka_settings import NewTopics
from hookbus.router.errors import BusFatal, BusUnavailable, OutputTooLarge
from hookbus.router.types import Output, Partition, Reader
from tests.brokers import Broker, second_node
from tests.router.buses.rig import (
    SOON,
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

RIGHT, WRONG = "secret", "wrong"
NONE: Mapping[str, str] = MappingProxyType({})

pytestmark = pytest.mark.kafka


@pytest.fixture(autouse=True)
def _apache_only(broker: Broker) -> None:
    if broker.name != "kafka":
        pytest.skip("needs HOOKBUS_TEST_BROKER=kafka")


async def test_transactions_leave_holes_that_nobody_waits_for(broker: Broker) -> None:
    """Aborted records and markers are never received; the scan ends, the lag is zero (C82)."""
    topic = fresh("in")
    async with opened(broker.bootstrap, topic, request_timeout=8.0) as bus:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, transactional_id=fresh("tx")
        )
        await producer.start()
        try:
            for count, commit in ((5, True), (3, False), (2, True)):
                await producer.begin_transaction()
                for number in range(count):
                    await producer.send_and_wait(topic, b"%d" % number, b"k", partition=0)
                await (producer.commit_transaction if commit else producer.abort_transaction)()

            async def shown() -> bool:
                """The markers are written after a commit is answered."""
                return numbers(await scanned(bus, topic)) == [0, 1, 2, 3, 4, 0, 1]

            await until(shown)
            reader = await bus.reader(fresh("g"), [topic])
            records = await collect(reader, 7)
            offsets = [record.offset for record in records]
            assert offsets[-1] - offsets[0] > 6
            await reader.settle(done(records))

            async def passed() -> bool:
                return sum((await reader.lag()).values()) == 0

            await until(passed)
            # What an open transaction has written is not there yet, for a scan either.
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"7", b"k", partition=0)
            assert len(await scanned(bus, topic)) == 7
            assert await reader.receive(10, 0.5) == []
            await producer.commit_transaction()
            assert numbers(await collect(reader, 1)) == [7]
        finally:
            await producer.stop()


async def test_a_restart_in_the_middle_loses_nothing(broker: Broker) -> None:
    """A loop that repeats what failed copies every record across a broker restart."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    async with opened(broker.bootstrap, topic, target, request_timeout=5.0) as bus:
        await bus.publish(numbered(topic, 3000, keys=50))
        reader = await bus.reader(group, [topic])
        copied: set[int] = set()

        async def copy(reader: Reader) -> None:
            while True:
                try:
                    records = await reader.receive(40, 1.0)
                except BusUnavailable:
                    continue
                settled = False
                while not settled:
                    try:
                        await reader.settle(done(records, target))
                        settled = True
                    except BusUnavailable:
                        await asyncio.sleep(0.1)  # as a loop backs off
                copied.update(numbers(records))

        loop = asyncio.create_task(copy(reader))
        try:
            await until(lambda: len(copied) > 200)
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
            await until(lambda: arrived(bus, target, 3000), 60.0, "copying everything")
        finally:
            loop.cancel()
            await asyncio.wait([loop])


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_refused_login_is_fatal_and_a_right_one_works(
    broker: Broker, mechanism: str
) -> None:
    """A wrong password is told from a broker that is away, and not by its text."""
    login = {"protocol": "SASL_PLAINTEXT", "mechanism": mechanism, "username": "hookbus"}
    topic = fresh("in")
    async with opened(broker.sasl, topic, **login, password=RIGHT, request_timeout=8.0) as bus:
        await bus.publish(numbered(topic, 3))
        assert len(await scanned(bus, topic)) == 3
    wrong = settings(broker.sasl, **login, password=WRONG, request_timeout=8.0)
    bus = KafkaBus(wrong, create_topics=NewTopics(1, 1))
    with pytest.raises(BusFatal) as found:
        await bus.open([topic])
    assert WRONG not in str(found.value)
    await bus.close()


async def test_two_holders_of_one_static_identity_are_fatal(broker: Broker) -> None:
    """The broker disowns each in turn; rejoining for ever would deliver everything twice (C89)."""
    topic, group = fresh("in"), fresh("g")
    static = {"group_instance_id": "pod-0", "request_timeout": 8.0}
    async with (
        opened(broker.bootstrap, topic, **static) as one,
        opened(broker.bootstrap, topic, **static) as two,
    ):
        readers = [await one.reader(group, [topic]), await two.reader(group, [topic])]

        async def serve() -> None:
            while True:
                for reader in readers:
                    await reader.receive(1, 0.05)

        with pytest.raises(BusFatal, match="fenced: another process"):
            await asyncio.wait_for(serve(), SOON)


async def test_a_static_member_keeps_its_partitions_over_a_restart(broker: Broker) -> None:
    """It comes back within its session as the same member, and goes on where it was: the other
    member's assignment goes on meanwhile."""
    topic, group = fresh("in"), fresh("g")
    patient = {"request_timeout": 8.0, "session_timeout": 30.0}
    async with opened(broker.bootstrap, topic, **patient) as beside:
        other = await beside.reader(group, [topic])
        tokens: dict[Partition, object | None] = {}
        for first in (0, 20, 40):
            async with opened(broker.bootstrap, topic, group_instance_id="pod-1", **patient) as bus:
                reader = await bus.reader(group, [topic])
                await until(lambda: len(reader.assigned()) == len(other.assigned()) == 2)  # noqa: B023
                tokens = tokens or {home: other.assignment(home) for home in other.assigned()}
                published = range(first, first + 20)
                await bus.publish([Output(topic, None, b"%d" % n, partition=n % 4)
                                   for n in published])  # fmt: skip
                records = await collect(reader, 10)
                own = {home.number for home in reader.assigned()}
                assert sorted(numbers(records)) == [n for n in published if n % 4 in own]
                await reader.settle(done(records))
                assert {home: other.assignment(home) for home in tokens} == tokens


async def test_what_was_deleted_or_aborted_is_not_fetched(broker: Broker) -> None:
    """Nor is a marker, and what comes after them is."""
    topic = fresh("in")
    async with opened(broker.bootstrap, topic, request_timeout=8.0) as bus:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, transactional_id=fresh("tx")
        )
        await producer.start()
        try:
            for commit in (True, False, True):
                await producer.begin_transaction()
                for number in range(3):
                    await producer.send_and_wait(topic, b"%d" % number, b"k", partition=0)
                await (producer.commit_transaction if commit else producer.abort_transaction)()
        finally:
            await producer.stop()

        async def offsets() -> list[int]:
            return [record.offset async for record in bus.fetch(topic, 0, range(20))]

        async def shown() -> bool:
            """The markers are written after a commit is answered."""
            return await offsets() == [0, 1, 2, 8, 9, 10]

        await until(shown)
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=2)})
        await admin.close()
        assert await offsets() == [2, 8, 9, 10]
        assert [record async for record in bus.fetch(topic, 0, [0, 1])] == []


async def test_a_publish_that_fails_ends_the_others_that_share_its_producer(broker: Broker) -> None:
    """They are told at once, to try again, and don't wait for what can't come any more."""
    topic, gone = fresh("in"), fresh("gone")
    large = Output(topic, b"k", b"x" * (2 * 1024 * 1024))  # the broker takes half of it
    async with opened(
        broker.bootstrap, topic, gone, request_timeout=8.0, max_message_bytes=4 * 1024 * 1024
    ) as bus:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        await admin.delete_topics([gone])

        async def deleted() -> bool:
            """The broker hears of it after the controller has answered."""
            return gone not in await admin.list_topics()

        await until(deleted)
        await admin.close()
        waiting = asyncio.create_task(bus.publish(numbered(gone, 1)))
        with pytest.raises(OutputTooLarge):
            await bus.publish([large])
        with pytest.raises(BusUnavailable, match="given up"):
            await waiting
        await bus.publish(numbered(topic, 3))
        assert len(await scanned(bus, topic)) == 3


async def test_a_topic_of_which_a_part_has_no_leader_is_unavailable_and_never_shown_in_part(
    broker: Broker,
) -> None:
    """While a node is away that alone has a partition: a scan doesn't pass the rest for the whole,
    and a start waits, for a changelog too, which lacks no partition."""
    topic, whole, changelog = fresh("in"), fresh("whole"), fresh("changelog")
    with second_node(broker) as second:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        early = KafkaBus(settings(broker.bootstrap, request_timeout=15.0))

        async def placed() -> bool:
            """On a node each; the second one may not be known yet."""
            on_both = {0: [1], 1: [2]}
            new = [
                NewTopic(topic, -1, -1, on_both),
                NewTopic(changelog, -1, -1, on_both),
                NewTopic(whole, -1, -1, {0: [1], 1: [1]}),
            ]
            await admin.create_topics(new)
            return {topic, changelog, whole} <= set(await admin.list_topics())

        async def published() -> bool:
            outputs = [Output(topic, None, b"%d" % n, partition=n % 2) for n in range(10)]
            try:
                async with opened(broker.bootstrap, topic, request_timeout=30.0) as bus:
                    await bus.publish(outputs)
            except BusUnavailable:
                return False
            return True

        async def leaderless() -> bool:
            try:
                (found,) = await admin.describe_topics([topic])
            except KafkaError:  # it may have asked the node that is away
                return False
            return {one["leader"] for one in found["partitions"]} == {1, -1}

        async def shown(*topics: str, changelogs: Mapping[str, str] = NONE) -> set[int]:
            """What a new bus that was opened with these shows of the topic."""
            bus = KafkaBus(settings(broker.bootstrap, request_timeout=30.0))
            try:
                await bus.open(topics, changelogs)
                return set(numbers(await scanned(bus, topic)))
            finally:
                await bus.close()

        async def shown_again() -> bool:
            try:
                found = await shown(whole, changelogs={changelog: whole})
            except BusUnavailable:
                return False
            return found == set(range(10))

        try:
            await until(placed)
            await until(published)
            await until(shown_again)
            await early.open([topic])
            await asyncio.to_thread(second.stop)
            await until(leaderless)
            for asked in ((), (topic,)):
                with pytest.raises(BusUnavailable, match=f"without a leader.*{topic}"):
                    await shown(*asked)
            with pytest.raises(BusUnavailable, match=f"without a leader.*{changelog}"):
                await shown(whole, changelogs={changelog: whole})
            with pytest.raises(BusUnavailable):
                await scanned(early, topic)
            await asyncio.to_thread(second.start)
            await until(shown_again)
        finally:
            await early.close()
            await admin.close()
            await asyncio.to_thread(second.stop)
