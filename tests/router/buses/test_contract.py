"""What every bus promises, whichever it is."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from hookbus.router.buses.placement import Placement
from hookbus.router.errors import TopicsMissing
from hookbus.router.types import Bus, Output, Partition, Reader, Record
from tests.router.buses.rig import (
    PARTITIONS,
    Rig,
    collect,
    done,
    fresh,
    numbered,
    numbers,
    scanned,
    until,
)


async def test_a_partition_is_in_order_and_a_key_stays_in_one(rig: Rig) -> None:
    """Records with one key come from one partition, the one that Kafka's hash gives, in order."""
    topic = fresh("in")
    async with rig.bus(topic) as bus:
        await bus.publish(numbered(topic, 60))
        await bus.publish(numbered(topic, 60, first=60))
        reader = await bus.reader(fresh("g"), [topic])
        records = await collect(reader, 120)
        for partition in range(PARTITIONS):
            part = [record for record in records if record.partition == partition]
            assert numbers(part) == sorted(numbers(part))
            assert [record.offset for record in part] == list(range(len(part)))
        placement = Placement()
        for record in records:
            assert record.partition == placement.place(record.key, PARTITIONS)
        assert sorted(numbers(records)) == list(range(120))


async def test_records_without_a_key_are_spread(rig: Rig) -> None:
    """No partition is favoured when there is no key to keep together."""
    topic = fresh("in")
    async with rig.bus(topic) as bus:
        await bus.publish([Output(topic, None, b"%d" % number) for number in range(40)])
        records = await scanned(bus, topic)
        assert Counter(record.partition for record in records) == dict.fromkeys(range(4), 10)


async def test_a_new_group_starts_at_the_oldest_record(rig: Rig) -> None:
    """What was published before the group existed is its first input."""
    topic = fresh("in")
    async with rig.bus(topic) as bus:
        await bus.publish(numbered(topic, 10))
        reader = await bus.reader(fresh("g"), [topic])
        await reader.settle(done(await collect(reader, 10)))
        other = await bus.reader(fresh("g"), [topic])
        assert sorted(numbers(await collect(other, 10))) == list(range(10))


async def test_what_is_settled_does_not_come_again_and_the_rest_does(rig: Rig) -> None:
    """A reader that closes takes nothing with it that it hasn't settled."""
    topic, group = fresh("in"), fresh("g")
    async with rig.bus(topic) as bus:
        await bus.publish(numbered(topic, 20))
        reader = await bus.reader(group, [topic])
        records = await collect(reader, 20)
        await reader.settle(done(records[:12]))
        await reader.close()
    async with rig.bus(topic) as bus:
        reader = await bus.reader(group, [topic])
        again = await collect(reader, 8)
        assert sorted(numbers(again)) == sorted(numbers(records[12:]))
        assert await reader.receive(10, 0.3) == []


async def test_a_later_success_never_passes_an_unsettled_record(rig: Rig) -> None:
    """With one record of a partition unsettled, everything from it on comes again."""
    topic, group = fresh("in"), fresh("g")
    async with rig.bus(topic) as bus:
        await bus.publish(numbered(topic, 10, keys=1))
        reader = await bus.reader(group, [topic])
        records = await collect(reader, 10)
        await reader.settle(done(records[5:]))
        await reader.settle(done(records[:4]))
        await reader.close()
        reader = await bus.reader(group, [topic])
        assert numbers(await collect(reader, 6)) == [4, 5, 6, 7, 8, 9]


async def test_outputs_arrive_in_order_and_once(rig: Rig) -> None:
    """Settling publishes; settling the same records again, in one call or another, publishes
    nothing."""
    topic, target = fresh("in"), fresh("out")
    async with rig.bus(topic, target) as bus:
        await bus.publish(numbered(topic, 100))
        reader = await bus.reader(fresh("g"), [topic])
        records = await collect(reader, 100, limit=17)
        await reader.settle([*done(records, target), *done(records, target)])
        await reader.settle(done(records, target))
        copied = await scanned(bus, target)
        assert sorted(numbers(copied)) == list(range(100))
        for partition in range(PARTITIONS):
            assert numbers([one for one in copied if one.partition == partition]) == numbers(
                [one for one in records if one.partition == partition]
            )


async def test_a_record_keeps_its_bytes(rig: Rig) -> None:
    """Empty, binary and big values, odd header names, several headers of one name: all return."""
    topic = fresh("in")
    outputs = [
        Output(topic, b"k", b""),
        Output(topic, b"", b"empty key"),
        Output(topic, b"k", bytes(range(256)), (("ce_id", b"\x00\xff"), ("ce_id", b"twice"))),
        Output(topic, b"k", b"x" * 900_000, (("naïve", b""),)),
        Output(topic, "ключ".encode(), b"v"),
    ]
    async with rig.bus(topic) as bus:
        await bus.publish(outputs)
        reader = await bus.reader(fresh("g"), [topic])
        received = await collect(reader, len(outputs))

        def comparable(one: Output | Record) -> tuple[object, ...]:
            return (one.key, one.value, one.headers)

        assert sorted(map(comparable, received), key=repr) == sorted(
            map(comparable, outputs), key=repr
        )
        assert all(record.timestamp > 1_600_000_000_000 for record in received)


async def test_a_tombstone_has_no_value(rig: Rig) -> None:
    """A null is not an empty value (case C86)."""
    topic = fresh("in")
    async with rig.bus(topic) as bus:
        await bus.publish([Output(topic, b"a", None), Output(topic, b"a", b"")])
        reader = await bus.reader(fresh("g"), [topic])
        assert [record.value for record in await collect(reader, 2)] == [None, b""]


async def test_members_share_the_partitions_and_one_end_moves_them(rig: Rig) -> None:
    """Two members hold all partitions between them, none twice; whoever stays gets them all."""
    topic, group = fresh("in"), fresh("g")
    async with rig.bus(topic) as first, rig.bus(topic) as second:
        one = await first.reader(group, [topic])
        assert one.assigned() == {Partition(topic, number) for number in range(PARTITIONS)}
        two = await second.reader(group, [topic])

        def shared() -> bool:
            return len(one.assigned()) == 2 and one.assigned().isdisjoint(two.assigned())

        async with serving(one), serving(two):
            await until(lambda: shared() and len(two.assigned()) == 2, what="an even share")
            await two.close()
            await until(lambda: len(one.assigned()) == PARTITIONS, what="taking over")
            assert two.assigned() == frozenset()


async def test_a_killed_member_is_replaced(rig: Rig) -> None:
    """Records that a dead process had received come again, within a bounded time."""
    topic, group = fresh("in"), fresh("g")
    async with rig.bus(topic) as bus:
        await bus.publish(numbered(topic, 20))
        async with rig.worker("hold", group, topic) as process:
            assert process.stdout is not None
            while int(await process.stdout.readline()) < 20:
                pass
            process.kill()
            await process.wait()
        reader = await bus.reader(group, [topic])
        assert sorted(numbers(await collect(reader, 20))) == list(range(20))


async def test_a_late_settlement_changes_nothing(rig: Rig) -> None:
    """Once a partition has gone to another member, the old one's outputs and offsets for it are
    dropped, and the new one receives the records again."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    async with rig.bus(topic, target) as first, rig.bus(topic, target) as second:
        await first.publish(numbered(topic, 80))
        one = await first.reader(group, [topic])
        records = await collect(one, 80)
        two = await second.reader(group, [topic])
        await until(lambda: len(two.assigned()) == 2 and len(one.assigned()) == 2)
        lost = two.assigned()
        assert lost.isdisjoint(one.assigned())
        await one.settle(done(records, target))
        assert not {record.value for record in await scanned(first, target)} & {
            record.value for record in records if record.home in lost
        }
        moved = [record for record in records if record.home in lost]
        again = await collect(two, len(moved))
        assert sorted(numbers(again)) == sorted(numbers(moved))


async def test_a_partition_that_comes_back_is_another_assignment(rig: Rig) -> None:
    """What was received before it went is dropped, even once the same records have been received
    again: their outputs would come before those of what precedes them."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    async with rig.bus(topic, target) as first, rig.bus(topic, target) as second:
        await first.publish(numbered(topic, 40))
        one = await first.reader(group, [topic])
        records = await collect(one, 40)
        before = {home: one.assignment(home) for home in one.assigned()}
        two = await second.reader(group, [topic])
        await until(lambda: len(one.assigned()) == len(two.assigned()) == 2)
        await two.close()
        await until(lambda: len(one.assigned()) == PARTITIONS)
        moved = [record for record in records if one.assignment(record.home) != before[record.home]]
        again = await collect(one, len(moved))
        assert sorted(numbers(again)) == sorted(numbers(moved))
        await one.settle(done(moved, target))
        assert await scanned(first, target) == []
        await one.settle(done(again, target))
        assert sorted(numbers(await scanned(first, target))) == sorted(numbers(again))


async def test_one_reader_follows_many_topics(rig: Rig) -> None:
    """A group may subscribe to as many topics as it likes; none starves."""
    topics = [fresh("in") for _ in range(12)]
    async with rig.bus(*topics) as bus:
        await bus.publish([one for topic in topics for one in numbered(topic, 30)])
        reader = await bus.reader(fresh("g"), topics)
        records = await collect(reader, 12 * 30, limit=40)
        assert Counter(record.topic for record in records) == dict.fromkeys(topics, 30)
        assert len(reader.assigned()) == 12 * PARTITIONS


async def test_a_scan_ends_where_the_topic_ended(rig: Rig) -> None:
    """Without `follow`, what is published during the scan isn't part of it."""
    topic = fresh("in")
    async with rig.bus(topic) as bus:
        assert await scanned(bus, topic) == []
        await bus.publish(numbered(topic, 50))
        seen = 0
        async for _ in bus.scan(topic, follow=False):
            seen += 1
            if seen == 1:
                await bus.publish(numbered(topic, 50))
        assert seen == 50


async def test_a_scan_that_follows_sees_what_comes(rig: Rig) -> None:
    """With `follow` it goes on with what another client publishes."""
    topic = fresh("in")
    async with rig.bus(topic) as bus, rig.bus(topic) as other:
        await bus.publish(numbered(topic, 5))
        scan = bus.scan(topic, follow=True)
        seen = [await anext(scan) for _ in range(5)]
        await other.publish(numbered(topic, 5, first=5))
        seen += [await anext(scan) for _ in range(5)]
        assert sorted(numbers(seen)) == list(range(10))
        await scan.aclose()  # type: ignore[attr-defined]


async def test_lag_counts_what_the_group_has_not_passed(rig: Rig) -> None:
    """Lag is there before anything is received, shrinks as records are settled, and covers the
    assigned partitions only."""
    topic = fresh("in")
    async with rig.bus(topic) as bus:
        reader = await bus.reader(fresh("g"), [topic])

        async def total() -> int:
            return sum((await reader.lag()).values())

        await bus.publish(numbered(topic, 40, keys=1))

        async def behind() -> bool:
            return await total() == 40

        await until(behind)
        records = await collect(reader, 40)
        assert await total() == 40
        await reader.settle(done(records[:30]))
        assert await total() == 10
        assert (await reader.lag())[records[0].home] == 10
        await reader.settle(done(records[30:]))
        assert await total() == 0
        assert (await reader.lag()).keys() == reader.assigned()
        await reader.close()
        assert await reader.lag() == {}


async def test_missing_topics_are_named(rig: Rig) -> None:
    """Without leave to create topics the start is refused with all that are missing."""
    topic, absent = fresh("in"), sorted([fresh("no"), fresh("no")])
    async with rig.bus(topic):
        pass
    with pytest.raises(TopicsMissing) as found:
        async with rig.bus(topic, *absent, create=False):
            pass
    assert found.value.topics == tuple(absent)
    async with rig.bus(topic, create=False) as bus:
        with pytest.raises(TopicsMissing):
            await bus.reader(fresh("g"), absent)
        with pytest.raises(TopicsMissing):
            await bus.publish(numbered(absent[0], 1))


async def test_waiting_ends_when_a_record_comes(rig: Rig) -> None:
    """A reader that waits is woken by another client's publish, long before its time is up."""
    topic = fresh("in")
    async with rig.bus(topic) as bus, rig.bus(topic) as other:
        reader = await bus.reader(fresh("g"), [topic])
        assert await reader.receive(10, 0.05) == []
        waiting = asyncio.create_task(reader.receive(10, 600.0))
        await other.publish(numbered(topic, 1))
        assert numbers(await waiting) == [0]


async def test_closing_twice_and_with_readers_is_fine(rig: Rig) -> None:
    """Whoever closes a bus closes its readers, and may do it again."""
    topic = fresh("in")
    bus: Bus
    async with rig.bus(topic) as bus:
        reader = await bus.reader(fresh("g"), [topic])
        await bus.reader(fresh("g"), [topic])
        await reader.close()
        await reader.close()
        await bus.close()


class serving:  # noqa: N801 - reads as what it does
    """Receives and settles in the background, as a loop would."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._serve())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _serve(self) -> None:
        while True:
            await self._reader.settle(done(await self._reader.receive(50, 0.5)))


async def test_an_output_may_name_its_partition(rig: Rig) -> None:
    """Then its key has no say, and one partition can be scanned alone."""
    topic = fresh("in")
    async with rig.bus(topic) as bus:
        await bus.publish([Output(topic, b"key", b"%d" % n, partition=n) for n in range(4)])
        for number in range(PARTITIONS):
            records = [r async for r in bus.scan(topic, follow=False, partition=number)]
            assert [(r.partition, r.value) for r in records] == [(number, b"%d" % number)]


async def test_every_assignment_of_a_partition_has_a_token_of_its_own(rig: Rig) -> None:
    """What a member kept for a partition must not outlive the assignment."""
    topic, group = fresh("in"), fresh("g")
    async with rig.bus(topic) as bus:
        one = await bus.reader(group, [topic])
        await until(lambda: len(one.assigned()) == PARTITIONS)
        before = {home: one.assignment(home) for home in one.assigned()}
        assert None not in before.values()
        two = await bus.reader(group, [topic])
        await until(lambda: len(one.assigned()) == 2 and len(two.assigned()) == 2)
        taken = two.assigned()
        assert all(one.assignment(home) is None for home in taken)
        await two.close()
        await until(lambda: len(one.assigned()) == PARTITIONS)
        assert all(one.assignment(home) is not before[home] for home in taken)


async def test_a_changelog_keeps_the_last_value_of_each_key(rig: Rig) -> None:
    """Applied in order, what a scan gives is the state, and a tombstone ends a key."""
    topic, changelog = fresh("in"), fresh("log")
    async with rig.bus() as bus:
        await bus.open([topic], {changelog: topic})
        changes = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"b", None)]
        await bus.publish([Output(changelog, k, v, partition=3) for k, v in changes])
        await bus.publish([Output(changelog, b"a", b"other", partition=0)])
        state: dict[bytes | None, bytes] = {}
        async for record in bus.scan(changelog, follow=False, partition=3):
            if record.value is None:
                state.pop(record.key, None)
            else:
                state[record.key] = record.value
        assert state == {b"a": b"2", b"c": b"1"}


async def test_records_are_fetched_at_their_places(rig: Rig) -> None:
    """In order and once each; an offset that isn't there yet, or a partition, gives nothing."""
    topic = fresh("in")
    async with rig.bus(topic) as bus:
        await bus.publish([Output(topic, b"k", b"%d" % n, partition=1) for n in range(2500)])
        wanted = [2499, 3, 7, 7, 1800, 2500, 90_000, 0]
        found = [record async for record in bus.fetch(topic, 1, wanted)]
        assert numbers(found) == [record.offset for record in found] == [0, 3, 7, 1800, 2499]
        assert {record.home for record in found} == {(topic, 1)}
        for partition, offsets in ((0, [0, 1]), (1, [2500, 2501]), (PARTITIONS, [0]), (1, [])):
            assert [r async for r in bus.fetch(topic, partition, offsets)] == []
        with pytest.raises(TopicsMissing):
            await anext(bus.fetch(fresh("no"), 0, [0]))
