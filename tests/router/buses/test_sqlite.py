"""What only a file can do to us: be locked, full, damaged, or shared with a process that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.buses.sqlite_group import shares
from hookbus.router.errors import BusFatal, BusUnavailable
from hookbus.router.types import Output, Reader
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

RETENTION = 600.0
"""Seconds; the bus itself looks for what is too old a minute after it was opened, not sooner."""


@pytest.mark.kill
async def test_a_killed_process_costs_nothing_and_repeats_nothing(sqlite: Rig) -> None:
    """Two processes copy one topic; one dies by SIGKILL in the middle. Every record arrives
    exactly once."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    count = 0
    async with sqlite.bus(topic, target) as bus:
        async with (
            sqlite.worker("copy", group, topic, target) as first,
            sqlite.worker("copy", group, topic, target) as second,
        ):
            assert first.stdout is not None
            assert second.stdout is not None
            await asyncio.gather(first.stdout.readline(), second.stdout.readline())
            # More and more, because the second may be done with any number of records before the
            # first has its share of the partitions.
            while int(await first.stdout.readline()) < 100:
                await bus.publish(numbered(topic, 50, keys=40, first=count))
                count += 50
            first.kill()
            await first.wait()

            async def arrived() -> bool:
                return len(await scanned(bus, target)) >= count

            await until(arrived)
        copied = await scanned(bus, target)
        assert Counter(numbers(copied)) == dict.fromkeys(range(count), 1)
        for key in {record.key for record in copied}:
            mine = numbers([record for record in copied if record.key == key])
            assert mine == sorted(mine)


async def test_a_cancelled_settlement_is_whole_or_absent(sqlite: Rig) -> None:
    """A caller that gives up and asks again doesn't double the outputs."""
    topic, target = fresh("in"), fresh("out")
    async with sqlite.bus(topic, target) as bus:
        await bus.publish(numbered(topic, 300))
        reader = await bus.reader(fresh("g"), [topic])
        records = await collect(reader, 300)
        task = asyncio.create_task(reader.settle(done(records, target)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await reader.settle(done(records, target))
        assert Counter(numbers(await scanned(bus, target))) == dict.fromkeys(range(300), 1)


async def test_a_locked_file_is_unavailable_and_does_not_stop_the_loop(tmp_path: Path) -> None:
    """While another program holds the lock, a publish fails in its time, the event loop goes on
    and readers still read; afterwards the same call works."""
    path = tmp_path / "bus.db"
    bus = SqliteBus(path, busy_timeout=0.3)
    await bus.open(["in"])
    await bus.publish(numbered("in", 3))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    turns = 0
    locked_out = asyncio.create_task(bus.publish(numbered("in", 1)))
    while not locked_out.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 10
    assert isinstance(locked_out.exception(), BusUnavailable)
    assert len(await scanned(bus, "in")) == 3
    other.execute("ROLLBACK")
    other.close()
    await bus.publish(numbered("in", 1))
    assert len(await scanned(bus, "in")) == 4
    await bus.close()


async def test_a_full_disk_is_unavailable_and_undoes_the_settlement(tmp_path: Path) -> None:
    """Outputs that don't fit leave nothing behind, not even the position."""
    bus = SqliteBus(tmp_path / "bus.db", partitions=1)
    await bus.open(["in", "out"])
    await bus.publish(numbered("in", 10))
    reader = await bus.reader("g", ["in"])
    records = await collect(reader, 10)

    async def limit(pages: int) -> None:
        await bus.writing.write(
            lambda connection: connection.execute(f"PRAGMA max_page_count={pages}").fetchone()
        )

    await limit(1)  # SQLite makes it the present size
    big = [Output("out", b"k", b"x" * 100_000)]
    with pytest.raises(BusUnavailable):
        await bus.publish(big)
    settlements = done(records, "out")
    settlements[-1] = type(settlements[-1])(records[-1], tuple(big))
    with pytest.raises(BusUnavailable):
        await reader.settle(settlements)
    assert await scanned(bus, "out") == []
    assert sum((await reader.lag()).values()) == 10
    await limit(10_000)
    await reader.settle(settlements)
    assert len(await scanned(bus, "out")) == 10
    assert sum((await reader.lag()).values()) == 0
    await bus.close()


async def test_a_file_that_is_no_bus_is_fatal(tmp_path: Path) -> None:
    """Text, another program's database, another version, a folder, a place that doesn't exist."""
    text = tmp_path / "text"
    text.write_text("not a database at all, but long enough to look at" * 20)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    newer = tmp_path / "newer.db"
    bus = SqliteBus(newer)
    await bus.open([])
    await bus.close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    for path in (text, foreign, newer, tmp_path, tmp_path / "nowhere" / "bus.db"):
        bus = SqliteBus(path)
        with pytest.raises(BusFatal):
            await bus.open(["in"])
        await bus.close()
    assert text.read_text().startswith("not a database")


async def test_many_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    """Whoever comes first makes the tables; the others find them."""
    for turn in range(10):
        buses = [SqliteBus(tmp_path / f"{turn}.db") for _ in range(8)]
        await asyncio.gather(*(bus.open(["in", "out"]) for bus in buses))
        await buses[0].publish(numbered("in", 5))
        assert len(await scanned(buses[7], "in")) == 5
        await asyncio.gather(*(bus.close() for bus in buses))


async def test_retention_keeps_what_a_group_has_not_passed(tmp_path: Path) -> None:
    """Old records go once every known group has passed them; new ones and unpassed ones stay."""
    now = 1_800_000_000.0
    bus = SqliteBus(tmp_path / "bus.db", partitions=1, retention=RETENTION, clock=lambda: now)
    await bus.open(["in"])
    await bus.publish(numbered("in", 5000, keys=1))
    slow, quick = await bus.reader("slow", ["in"]), await bus.reader("quick", ["in"])
    await quick.settle(done(await collect(quick, 5000, limit=500)))
    await slow.settle(done(await collect(slow, 2500)))
    assert await bus.prune() == 0
    now += 3600
    await bus.publish(numbered("in", 10, keys=1, first=5000))
    assert await bus.prune() == 2500
    assert numbers(await scanned(bus, "in"))[0] == 2500
    await slow.settle(done(await collect(slow, 2510)))
    await quick.settle(done(await collect(quick, 10)))
    assert await bus.prune() == 2500
    assert numbers(await scanned(bus, "in")) == list(range(5000, 5010))
    late = await bus.reader("late", ["in"])
    assert numbers(await collect(late, 10)) == list(range(5000, 5010))
    assert sum((await slow.lag()).values()) == 0
    await bus.close()


async def test_a_topic_that_another_process_made_can_be_read_after_retention_ran(
    tmp_path: Path,
) -> None:
    """As in a reload of one process after another: the second meets the topic in its retention."""
    first = SqliteBus(tmp_path / "bus.db", partitions=2, retention=3600.0)
    second = SqliteBus(tmp_path / "bus.db", partitions=2, retention=3600.0)
    await first.open(["old"])
    await second.open(["old"])
    await first.open(["new"])
    await first.publish(numbered("new", 10))
    assert await second.prune() == 0
    await second.open(["new"])
    reader = await second.reader("g", ["new"])
    assert sorted(numbers(await collect(reader, 10))) == list(range(10))
    assert sorted(numbers(await scanned(second, "new"))) == list(range(10))
    await first.close()
    await second.close()


async def test_the_file_does_not_grow_under_retention(tmp_path: Path) -> None:
    """Deleted records make room for new ones."""
    now = 1_800_000_000.0
    path = tmp_path / "bus.db"
    bus = SqliteBus(path, partitions=2, retention=60.0, clock=lambda: now)
    await bus.open(["in"])
    reader = await bus.reader("g", ["in"])
    sizes = []
    for _ in range(24):
        await bus.publish([Output("in", b"%d" % one, b"x" * 2000) for one in range(500)])
        await reader.settle(done(await collect(reader, 500)))
        now += 120
        await bus.prune()
        sizes.append(path.stat().st_size + path.with_name("bus.db-wal").stat().st_size)
    assert max(sizes[12:]) <= max(sizes[:12]) * 1.1
    await bus.close()


async def test_a_process_that_leaves_takes_nothing_from_one_that_stays(sqlite: Rig) -> None:
    """It is not the last one, so what is written after it has left is there for the next."""
    topic = fresh("in")
    async with sqlite.bus(topic) as bus:
        async with sqlite.worker("send", "10", topic) as leaving:
            assert await leaving.wait() == 0
        await bus.publish(numbered(topic, 10, first=10))
        async with sqlite.worker("hold", fresh("g"), topic) as next_one:
            assert next_one.stdout is not None
            async with asyncio.timeout(30):
                while int(await next_one.stdout.readline()) < 20:
                    pass


async def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    """It holds events, and so do the files that SQLite keeps beside it."""
    before = os.umask(0)
    try:
        bus = SqliteBus(tmp_path / "bus.db")
        await bus.open(["in"])
        await bus.publish([Output("in", None, b"{}")])
        modes = _modes(tmp_path)
        await bus.close()
    finally:
        os.umask(before)
    assert {"bus.db", "bus.db-wal"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def test_a_journal_is_a_bus_with_one_partition(tmp_path: Path) -> None:
    """Standing alone: append, close, open again, read from the start, in order and stamped."""
    path = tmp_path / "journal.db"
    for first in (0, 10):
        journal = SqliteBus(path, partitions=1, clock=lambda: 1_800_000_000.5)
        await journal.open(["failures"])
        await journal.publish(numbered("failures", 10, first=first))
        await journal.close()
    journal = SqliteBus(path, partitions=1)
    await journal.open(["failures"])
    records = await scanned(journal, "failures")
    assert numbers(records) == list(range(20))
    assert {record.timestamp for record in records} == {1_800_000_000_500}
    assert {record.partition for record in records} == {0}
    await journal.close()


async def test_what_is_published_once_is_not_published_again_while_it_is_kept(
    tmp_path: Path,
) -> None:
    """Neither by another process nor after a restart; its key is forgotten when it may be gone."""
    now = 1_800_000_000.0

    async def publish(key: bytes) -> bool:
        journal = SqliteBus(
            tmp_path / "journal.db", partitions=1, retention=RETENTION, clock=lambda: now
        )
        await journal.open(["failures"], {"ids": "failures"})
        new = await journal.publish_once([Output("failures", None, key)], "ids", key)
        await journal.close()
        return new

    assert [await publish(key) for key in (b"a", b"b", b"a", b"b")] == [True, True, False, False]
    now += 0.5 * RETENTION
    assert [await publish(key) for key in (b"a", b"c")] == [False, True]
    now += 0.7 * RETENTION
    assert [await publish(key) for key in (b"a", b"c")] == [True, False]
    journal = SqliteBus(tmp_path / "journal.db", partitions=1)
    await journal.open(["failures"])
    assert [record.value for record in await scanned(journal, "failures")] == [
        b"a", b"b", b"c", b"a",
    ]  # fmt: skip
    await journal.close()


async def test_a_member_whose_lease_ran_out_writes_nothing(sqlite: Rig) -> None:
    """A process that is frozen longer than its lease loses its partitions; when it thaws, its
    settlements are dropped, so every record is still copied exactly once."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    async with sqlite.bus(topic, target) as bus:
        await bus.publish(numbered(topic, 2000, keys=40))
        async with sqlite.worker("late", group, topic, target) as process:
            assert process.stdout is not None
            while not (in_hand := int(await process.stdout.readline())):
                pass
            await freeze(process, Path(sqlite.location))
            reader = await bus.reader(group, [topic])
            await until(lambda: len(reader.assigned()) == PARTITIONS)
            some = await collect(reader, 300)
            process.send_signal(signal.SIGUSR1)
            process.send_signal(signal.SIGCONT)
            await reader.settle(done(some, target))
            assert int(await process.stdout.readline()) == in_hand, "settled, as far as it knows"
            async with copying(reader, target):

                async def arrived() -> bool:
                    return len(await scanned(bus, target)) >= 2000

                await until(arrived)
        assert Counter(numbers(await scanned(bus, target))) == dict.fromkeys(range(2000), 1)


async def freeze(process: asyncio.subprocess.Process, path: Path) -> None:
    """Stop the process outside a transaction: inside one it would hold the file's only lock."""
    probe = sqlite3.connect(path, isolation_level=None, timeout=0.0)

    def frozen() -> bool:
        process.send_signal(signal.SIGSTOP)
        try:
            probe.execute("BEGIN IMMEDIATE")
            probe.execute("ROLLBACK")
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
            return False
        return True

    await until(frozen)
    probe.close()


members = st.lists(
    st.frozensets(st.sampled_from(["a", "b", "c"]), min_size=1), min_size=1, max_size=6
).map(lambda topics: list(enumerate(topics)))


@given(members, st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 9), min_size=1))
def test_shares_cover_everything_and_are_fair(
    group: list[tuple[int, frozenset[str]]], partitions: dict[str, int]
) -> None:
    """Each topic that anybody wants is wholly shared out among those who want it, and members
    that want the same hold the same, give or take one."""
    share = shares(group, partitions)
    for topic, count in partitions.items():
        wanting = [member for member, topics in group if topic in topics]
        assert sum(share.get((member, topic), 0) for member in wanting) == (count if wanting else 0)
        assert all(member in wanting for member, shared in share if shared == topic)
    total = {
        member: sum(count for (one, _), count in share.items() if one == member)
        for member, _ in group
    }
    for one, topics in group:
        for other, others in group:
            if topics == others:
                assert abs(total[one] - total[other]) <= 1


class copying:  # noqa: N801 - reads as what it does
    """Copies in the background, as a loop would."""

    def __init__(self, reader: Reader, target: str) -> None:
        self._reader = reader
        self._target = target

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._copy())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _copy(self) -> None:
        while True:
            await self._reader.settle(done(await self._reader.receive(20, 0.2), self._target))
