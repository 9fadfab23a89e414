"""What the embedded bus deletes, and for whom it waits."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbus.router.buses import sqlite_append, sqlite_group, sqlite_log, sqlite_retention
from hookbus.router.buses.placement import Placement
from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.buses.sqlite_schema import OFFSET_BITS, prepare
from tests.router.buses.rig import collect, done, numbered, numbers, scanned

RETENTION = 600  # seconds; no test is open for the tenth after which the bus looks by itself
ENOUGH = 11  # looks, a tenth of the retention apart, between which the whole of it passes


class Aged:
    """A bus with a clock that is set by hand, whose members don't run out."""

    def __init__(self, path: Path) -> None:
        self.now = 1_800_000_000.0
        self.bus = SqliteBus(
            path, partitions=1, retention=RETENTION, lease=1e6, clock=lambda: self.now
        )

    async def looks(self, count: int) -> int:
        """So many rounds of retention; returns how many records went."""
        gone = 0
        for _ in range(count):
            self.now += RETENTION / 10
            gone += await self.bus.prune()
        return gone


@pytest.mark.parametrize("way", ["removed", "other topics"])
async def test_a_group_that_left_a_topic_is_not_waited_for_longer_than_the_retention(
    tmp_path: Path, way: str
) -> None:
    """Whether its sink was removed or renamed, or reads other topics now."""
    aged = Aged(tmp_path / "bus.db")
    bus = aged.bus
    await bus.open(["in", "other"])
    await (await bus.reader("left", ["in"])).close()
    if way == "other topics":
        await bus.reader("left", ["other"])
    stays = await bus.reader("stays", ["in"])
    for first in (0, 100, 200):
        await bus.publish(numbered("in", 100, first=first))
        await stays.settle(done(await collect(stays, 100)))
        await aged.looks(ENOUGH)
    await bus.publish(numbered("in", 100, first=300))
    assert numbers(await scanned(bus, "in")) == list(range(300, 400))
    await bus.close()


async def test_a_member_that_settles_nothing_is_waited_for(tmp_path: Path) -> None:
    """A sink whose backend is away keeps all that it has to deliver, however old."""
    aged = Aged(tmp_path / "bus.db")
    await aged.bus.open(["in"])
    reader = await aged.bus.reader("g", ["in"])
    await aged.bus.publish(numbered("in", 100))
    assert await aged.looks(10 * ENOUGH) == 0
    assert numbers(await collect(reader, 100)) == list(range(100))
    await aged.bus.close()


async def test_a_group_that_is_away_for_a_while_finds_all_that_it_had_not_settled(
    tmp_path: Path,
) -> None:
    """However often, however the clock is set meanwhile, and if no process ran for long."""
    aged = Aged(tmp_path / "bus.db")
    await aged.bus.open(["in"])
    await aged.bus.publish(numbered("in", 100))
    for step in (0, 100 * RETENTION, -50 * RETENTION, 200 * RETENTION):
        reader = await aged.bus.reader("g", ["in"])
        assert numbers(await collect(reader, 100)) == list(range(100))
        await reader.close()
        assert await aged.looks(4) == 0
        aged.now += step
        assert await aged.looks(4) == 0
    await aged.bus.close()


async def test_a_group_that_was_not_waited_for_goes_on_at_the_oldest_record_that_is_left(
    tmp_path: Path,
) -> None:
    """Nothing that it had settled comes again, and it is waited for like any other."""
    aged = Aged(tmp_path / "bus.db")
    bus = aged.bus
    await bus.open(["in"])
    await bus.publish(numbered("in", 100))
    reader = await bus.reader("g", ["in"])
    await reader.settle(done(await collect(reader, 50)))
    await reader.close()
    assert await aged.looks(2 * ENOUGH) == 100
    await bus.publish(numbered("in", 10, first=100))
    reader = await bus.reader("g", ["in"])
    assert sum((await reader.lag()).values()) == 10
    assert await aged.looks(2 * ENOUGH) == 0
    records = await collect(reader, 10)
    assert numbers(records) == list(range(100, 110))
    await reader.settle(done(records))
    assert sum((await reader.lag()).values()) == 0
    assert await aged.looks(1) == 10
    await bus.close()


async def test_a_file_that_never_noted_who_is_away_begins_to(tmp_path: Path) -> None:
    """As one that an earlier process made, with a group that left long ago."""
    aged = Aged(tmp_path / "bus.db")
    await aged.bus.open(["in"])
    await (await aged.bus.reader("left", ["in"])).close()
    await aged.bus.publish(numbered("in", 100))
    await aged.bus.close()
    connection = sqlite3.connect(tmp_path / "bus.db")
    connection.execute("DROP TABLE absences")
    connection.close()
    later = Aged(tmp_path / "bus.db")
    later.now += 100 * RETENTION
    await later.bus.open(["in"])
    assert await later.looks(ENOUGH - 1) == 0
    assert await later.looks(1) == 100
    await later.bus.close()


TOPICS = ["a", "b"]
GROUPS = ["g", "h"]
LEASE = 4
subscriptions = st.sampled_from([["a"], ["b"], ["a", "b"]])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(TOPICS), st.integers(1, 5)),
        st.tuples(st.just("join"), st.sampled_from(GROUPS), subscriptions),
        st.tuples(st.just("leave"), st.integers(0, 9)),
        st.tuples(st.just("die"), st.integers(0, 9)),
        st.tuples(st.just("settle"), st.integers(0, 9), st.integers(1, 5)),
        st.tuples(st.just("turn"), st.integers(-3 * RETENTION, 3 * RETENTION), st.integers(1, 6)),
    ),
    max_size=40,
)


class History:
    """A file in memory, and what its groups have to find in it."""

    def __init__(self) -> None:
        self.file = sqlite3.connect(":memory:", isolation_level=None)
        prepare(self.file, ":memory:")
        sqlite_log.create_topics(self.file, TOPICS, 1, {})
        self.topics = sqlite_log.catalog(self.file)
        self.now = 1_800_000_000_000
        self.rule = sqlite_retention.Rule(RETENTION * 1000, LEASE * 1000)
        self.members: list[tuple[int, int, list[str]]] = []
        self.missed: dict[tuple[int, str], int] = {}
        """By group and topic: the looks in a row, so far, at which it had no member."""
        self.began: dict[tuple[int, str], int] = {}
        """By group and topic: the oldest record when it joined."""
        self.latest = self.now

    def publish(self, topic: str, count: int) -> None:
        outputs = sqlite_append.placed(numbered(topic, count), self.topics, Placement())
        sqlite_append.append(self.file, outputs, self.now)

    def join(self, group: str, topics: list[str]) -> None:
        expires = self.now + self.rule.lease
        joined = sqlite_group.join(self.file, group, topics, self.topics, expires)
        self.members.append((*joined, topics))
        for topic in topics:
            self.missed[joined[0], topic] = 0
            self.began[joined[0], topic], _ = sqlite_log.bounds(self.file, self.at(topic))

    def leave(self, number: int) -> None:
        if number < len(self.members):
            group, member, _ = self.members.pop(number)
            sqlite_group.leave(self.file, group, member)

    def die(self, number: int) -> None:
        if number < len(self.members):
            del self.members[number]

    def settle(self, number: int, count: int) -> None:
        if number < len(self.members):
            group, _, topics = self.members[number]
            for topic in topics:
                start, end = sqlite_log.bounds(self.file, self.at(topic))
                at = max(start, sqlite_group.position(self.file, group, self.at(topic)))
                moved = {self.at(topic): min(end, at + count)}
                sqlite_group.advance(self.file, group, moved)

    def turn(self, seconds: int, times: int) -> None:
        """Time passes, or the clock is set; retention may be quicker than the renewals."""
        for _ in range(times):
            self.now += seconds * 1000
            self.latest = max(self.latest, self.now)
            self.look()
            for group, member, topics in self.members:
                sqlite_group.renew(
                    self.file, group, member, topics, self.topics, [], self.now, self.rule.lease
                )
            self.look()

    def look(self) -> None:
        for topic in TOPICS:
            sqlite_retention.prune(self.file, self.at(topic), self.rule, self.now, 1000)
        for group, topic in self.missed:
            here = any(group == one and topic in topics for one, _, topics in self.members)
            self.missed[group, topic] = 0 if here else self.missed[group, topic] + 1

    def at(self, topic: str) -> int:
        return self.topics[topic].partitions[0]

    def unsettled(self) -> dict[tuple[int, str], int]:
        """How many records each group that is waited for hasn't settled."""
        found = {}
        for (group, topic), missed in self.missed.items():
            if missed < 10:
                _, end = sqlite_log.bounds(self.file, self.at(topic))
                at = sqlite_group.position(self.file, group, self.at(topic))
                found[group, topic] = end - max(at, self.began[group, topic])
        return found

    def kept(self, topic: str) -> int:
        one = (self.at(topic) << OFFSET_BITS, (self.at(topic) + 1) << OFFSET_BITS)
        (count,) = self.file.execute(
            "SELECT count(*) FROM records WHERE id >= ? AND id < ?", one
        ).fetchone()
        return int(count)


@given(steps)
def test_nothing_unsettled_goes_while_its_group_is_there_and_all_that_is_old_goes_at_last(
    history: list[tuple[Any, ...]],
) -> None:
    """Whoever joins, leaves or dies, and however the clock is set."""
    world = History()
    for name, *arguments in history:
        getattr(world, name)(*arguments)
        for (_, topic), count in world.unsettled().items():
            assert world.kept(topic) >= count
    world.members.clear()
    world.now = world.latest + 2 * world.rule.retention  # later than any record and any lease
    for _ in range(ENOUGH + 1):
        world.now += world.rule.retention // 10
        world.look()
    assert [world.kept(topic) for topic in TOPICS] == [0, 0]
    world.file.close()
