"""The embedded bus: a durable, partitioned log in one SQLite file that processes can share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from hookbus.router.buses import sqlite_append, sqlite_group, sqlite_log, sqlite_retention
from hookbus.router.buses.changes import Changes
from hookbus.router.buses.placement import Placement
from hookbus.router.buses.sqlite_file import SqliteFile
from hookbus.router.buses.sqlite_reader import SqliteReader
from hookbus.router.errors import BusFatal, BusUnavailable, OutputTooLarge, TopicsMissing
from hookbus.router.types import Output, Partition, Reader, Record

log = logging.getLogger("hookbus.bus")

_POLL: Final = 0.03  # how soon a record from another process is seen, in seconds
_SCANNED: Final = 500
_PRUNED: Final = 2000


class SqliteBus:
    """A bus in the file `path`; the same class on a file of its own is the failure journal.

    `partitions` is what new topics get; with `create_topics` false, missing ones are refused.
    Records older than `retention` seconds are deleted once every group has passed them that had a
    member within such a time; their pages are used again, so the file stays at its largest size.
    `clock` gives seconds since the epoch. A member that dies is replaced within `lease` seconds;
    one that closes, at once. `max_message` bounds a record, in bytes.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        partitions: int = 4,
        create_topics: bool = True,
        retention: float | None = None,
        clock: Callable[[], float] = time.time,
        lease: float = 4.0,
        busy_timeout: float = 5.0,
        max_message: int | None = None,
    ) -> None:
        self._partitions = partitions
        self._create_topics = create_topics
        self._retention = retention
        self._clock = clock
        self._lease = lease
        self._max_message = max_message
        self.reading = SqliteFile(path, busy_timeout=busy_timeout, name="read")
        self.writing = SqliteFile(path, busy_timeout=busy_timeout, name="write")
        self.changes = Changes()
        self.topics: sqlite_log.Catalog = {}
        self._homes: dict[int, Partition] = {}
        self._placement = Placement()
        self._readers: set[SqliteReader] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(
        self, topics: Sequence[str], changelogs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        await self.writing.open()
        await self.reading.open()
        if self._create_topics:
            await self.writing.write(
                lambda connection: sqlite_log.create_topics(
                    connection, topics, self._partitions, changelogs
                )
            )
        await self._require([*topics, *changelogs])
        if not self._tasks:
            self._tasks.append(asyncio.create_task(self._watch(), name="hookbus-watch"))
            if self._retention is not None:
                self._tasks.append(asyncio.create_task(self._retain(), name="hookbus-retain"))

    async def probe(self, group: str, topics: Sequence[str]) -> None:
        await self._require(topics)

    async def reader(self, group: str, topics: Sequence[str]) -> Reader:
        await self._require(topics)
        expires = self.now() + int(self._lease * 1000)
        group_id, member = await self.writing.write(
            lambda connection: sqlite_group.join(connection, group, topics, self.topics, expires)
        )
        reader = SqliteReader(self, group_id, member, topics, self._lease)
        self._readers.add(reader)
        try:
            await reader.start()
        except BaseException:
            await reader.close()
            raise
        return reader

    async def publish(self, outputs: Sequence[Output]) -> None:
        await self._require({output.topic for output in outputs})
        placed, now = self.placed(outputs), self.now()
        await self.writing.write(partial(sqlite_append.append, outputs=placed, now=now))
        self.changes.notify()

    async def scan(
        self, topic: str, *, follow: bool, partition: int | None = None
    ) -> AsyncIterator[Record]:
        await self._require([topic])
        found = self.topics[topic]
        partitions = found.partitions if partition is None else (found.partitions[partition],)
        if found.changelog:
            for one in partitions:
                for record in await self._changelog(one):
                    yield record
            return
        bounds = await self.reading.read(
            lambda connection: {one: sqlite_log.bounds(connection, one) for one in partitions}
        )
        at = {one: start for one, (start, _) in bounds.items()}
        while True:
            seen = self.changes.count
            moved = False
            for one in partitions:
                limit = _SCANNED if follow else min(_SCANNED, bounds[one][1] - at[one])
                for record in await self._from(one, at[one], limit):
                    at[one] = record.offset + 1
                    moved = True
                    if follow or record.offset < bounds[one][1]:
                        yield record
            if not moved:
                if not follow:
                    return
                await self.changes.after(seen, 60.0)

    async def fetch(
        self, topic: str, partition: int, offsets: Collection[int]
    ) -> AsyncIterator[Record]:
        await self._require([topic])
        ids = self.topics[topic].partitions
        if partition not in range(len(ids)):
            return
        home, one = Partition(topic, partition), ids[partition]
        for offset in sorted(set(offsets)):
            found = await self.reading.read(
                partial(sqlite_log.read_at, home=home, partition=one, offset=offset)
            )
            if found is not None:
                yield found

    async def publish_once(self, outputs: Sequence[Output], ids: str, key: bytes) -> bool:
        """Append, unless the changelog `ids` has `key`, and note the key there, all in one
        transaction; returns whether it was new. Keys are forgotten after the retention."""
        await self._require([ids, *(output.topic for output in outputs)])
        (noted,) = self.topics[ids].partitions
        placed = self.placed(outputs)

        def publish(connection: sqlite3.Connection) -> bool:
            now = self.now()
            before = now - int(self._retention * 1000) if self._retention else 0
            if not sqlite_log.note_once(connection, noted, key, now, before):
                return False
            sqlite_append.append(connection, placed, now)
            return True

        new = await self.writing.write(publish)
        self.changes.notify()
        return new

    async def close(self) -> None:
        for reader in list(self._readers):
            await reader.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks.clear()
        await self.reading.close()
        await self.writing.close()

    async def prune(self) -> int:
        """Delete what retention allows, in small transactions; returns how many records went."""
        if self._retention is None:
            return 0
        rule = sqlite_retention.Rule(int(self._retention * 1000), int(self._lease * 1000))
        self._learn(await self.reading.read(sqlite_log.catalog))
        total = 0
        for partition in [one for topic in self.topics.values() for one in topic.partitions]:
            gone = _PRUNED
            while gone == _PRUNED:
                gone = await self._prune(partition, rule)
                total += gone
        return total

    def placed(self, outputs: Sequence[Output]) -> list[sqlite_append.Placed]:
        """The outputs as they are appended. Raises OutputTooLarge, and TopicsMissing."""
        limit = self._max_message
        for output in outputs:
            if limit is not None and output.size > limit:
                raise OutputTooLarge(
                    f"a record of {output.size} bytes for {output.topic}; the limit is {limit}"
                )
        return sqlite_append.placed(outputs, self.topics, self._placement)

    def home(self, partition: int) -> Partition:
        """The topic and number of a partition id."""
        return self._homes[partition]

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return int(self._clock() * 1000)

    def forget(self, reader: SqliteReader) -> None:
        self._readers.discard(reader)

    async def _require(self, topics: Sequence[str] | set[str]) -> None:
        if all(topic in self.topics for topic in topics):
            return
        found = await self.reading.read(sqlite_log.catalog)
        missing = {topic for topic in topics if topic not in found}
        if missing:
            raise TopicsMissing(missing)
        self._learn(found)

    def _learn(self, found: sqlite_log.Catalog) -> None:
        """A topic that is known has to have its partitions known."""
        self._homes = {
            partition: Partition(name, number)
            for name, topic in found.items()
            for number, partition in enumerate(topic.partitions)
        }
        self.topics = found

    async def _changelog(self, partition: int) -> list[Record]:
        home = self.home(partition)
        return await self.reading.read(
            lambda connection: sqlite_log.read_changelog(connection, home, partition)
        )

    async def _from(self, partition: int, offset: int, limit: int) -> list[Record]:
        if limit <= 0:
            return []
        home = self.home(partition)
        return await self.reading.read(
            lambda connection: sqlite_log.read(connection, home, partition, offset, limit)
        )

    async def _watch(self) -> None:
        """Wake those who wait when another process has written."""
        last = -1
        while True:
            await asyncio.sleep(_POLL)
            if not self.changes.awaited:
                continue
            try:
                version = await self.reading.data_version()
            except BusUnavailable:
                continue
            except BusFatal:
                self.changes.notify()  # who waits will meet the error
                return
            if version != last:
                last = version
                self.changes.notify()

    async def _retain(self) -> None:
        period = min(60.0, max(1.0, (self._retention or 0.0) / 10))
        while True:
            await asyncio.sleep(period)
            with contextlib.suppress(BusUnavailable):
                await self.prune()

    async def _prune(self, partition: int, rule: sqlite_retention.Rule) -> int:
        return await self.writing.write(
            lambda connection: sqlite_retention.prune(
                connection, partition, rule, self.now(), _PRUNED
            )
        )
