"""One member of a consumer group of the embedded bus."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hookbus.router.buses import sqlite_append, sqlite_group, sqlite_log
from hookbus.router.buses.sqlite_holdings import Held, Holdings
from hookbus.router.errors import BusFatal, BusUnavailable
from hookbus.router.types import Output, Partition, Record, Settlement

if TYPE_CHECKING:
    from hookbus.router.buses.sqlite import SqliteBus

log = logging.getLogger("hookbus.bus")


class SqliteReader:
    """Reads what its leases cover, and settles in one transaction: outputs, positions and the
    check that it still owns the partitions. Exactly-once between topics as long as the records of
    a partition are settled in order."""

    def __init__(
        self, bus: SqliteBus, group: int, member: int, topics: Sequence[str], lease: float
    ) -> None:
        self._bus = bus
        self._group = group
        self._member = member
        self._topics = tuple(topics)
        self._lease = lease
        self._holdings = Holdings(bus.home)
        self._settling = asyncio.Lock()
        self._renewing = asyncio.Lock()
        self._hurry = asyncio.Event()  # a partition is owed to somebody who waits for it
        self._fatal: BusFatal | None = None
        self._closed = False
        self._heart: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._renew()
        self._heart = asyncio.create_task(self._beat(), name="hookbus-lease")

    async def receive(self, limit: int, wait: float) -> list[Record]:
        deadline = asyncio.get_running_loop().time() + wait
        while True:
            self._check()
            seen = self._bus.changes.count
            records = await self._read(limit)
            left = deadline - asyncio.get_running_loop().time()
            if records or left <= 0:
                return records
            await self._bus.changes.after(seen, left)

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        self._check()
        # A caller that is cancelled must not leave a transaction that nobody remembers.
        await asyncio.shield(asyncio.ensure_future(self._settle(settlements)))

    def assigned(self) -> frozenset[Partition]:
        return frozenset(self._holdings.homes())

    def assignment(self, partition: Partition) -> object | None:
        return self._holdings.homes().get(partition)

    async def lag(self) -> Mapping[Partition, int]:
        held = list(self._holdings.held.values())

        def measure(connection: sqlite3.Connection) -> dict[Partition, int]:
            found = {}
            for one in held:
                start, end = sqlite_log.bounds(connection, one.partition)
                passed = sqlite_group.position(connection, self._group, one.partition)
                found[one.home] = end - max(passed, start)
            return found

        measured = await self._bus.reading.read(measure)
        still = self.assigned()
        return {home: lag for home, lag in measured.items() if home in still}

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.wait([self._heart])
        async with self._settling, self._renewing:
            self._holdings.held.clear()
            try:
                await self._bus.writing.write(
                    lambda connection: sqlite_group.leave(connection, self._group, self._member)
                )
            except (BusUnavailable, BusFatal) as error:
                log.warning("left a group without saying so: %s; its leases expire", error)
        self._bus.forget(self)
        self._bus.changes.notify()

    async def _read(self, limit: int) -> list[Record]:
        candidates = self._holdings.readable()

        def fetch(connection: sqlite3.Connection) -> tuple[int, list[tuple[Held, list[Record]]]]:
            generation = sqlite_group.generation(connection, self._group)
            found, room, size = [], limit, 0
            for held in candidates:
                records = sqlite_log.read(connection, held.home, held.partition, held.fetch, room)
                found.append((held, records))
                room -= len(records)
                size += sum(len(record.value or b"") for record in records)
                if room <= 0 or size >= sqlite_log.READ_BYTES:
                    break
            return generation, found

        generation, found = await self._bus.reading.read(fetch)
        received: list[Record] = []
        for held, records in found:
            if not self._holdings.still(held) or held.yield_by is not None:
                continue  # lost while reading
            if records:
                held.mark.take(records)
                held.fetch = records[-1].offset + 1
            received += records
        if generation != self._holdings.generation and not received:
            await self._renew()
        return received

    async def _settle(self, settlements: Sequence[Settlement]) -> None:
        async with self._settling:
            homes = self._holdings.homes()
            offsets: dict[int, set[int]] = {}
            outputs: list[Output] = []
            sources: list[int] = []  # the partitions whose records they come from
            for settlement in settlements:
                record = settlement.record
                held = homes.get(record.home)
                if held is None or not held.mark.holds(record):
                    continue  # of a former lease, or settled before
                settled = offsets.setdefault(held.partition, set())
                if record.offset in settled:
                    continue  # twice in this call
                settled.add(record.offset)
                outputs += settlement.outputs
                sources += [held.partition] * len(settlement.outputs)
            touched = [self._holdings.held[partition] for partition in offsets]
            if not touched:
                return
            positions = {
                held.partition: held.mark.after(offsets[held.partition]) for held in touched
            }
            epochs = {held.partition: held.epoch for held in touched}
            placed, now = self._bus.placed(outputs), self._bus.now()

            def commit(connection: sqlite3.Connection) -> frozenset[int]:
                owned = sqlite_group.owned(connection, self._group, self._member, epochs)
                mine = placed
                if len(owned) < len(touched):
                    mine = [one for one, at in zip(placed, sources, strict=True) if at in owned]
                sqlite_append.append(connection, mine, now)
                moved = {
                    partition: offset
                    for partition, offset in positions.items()
                    if partition in owned and offset is not None
                }
                sqlite_group.advance(connection, self._group, moved)
                return owned

            owned = await self._bus.writing.write(commit)
            for held in touched:
                if held.partition in owned:
                    held.mark.settle(offsets[held.partition])
                else:
                    self._holdings.lose(held)
                if held.yield_by is not None:
                    self._hurry.set()
        self._bus.changes.notify()

    async def _beat(self) -> None:
        while True:
            await self._pause()
            try:
                await self._renew()
            except BusUnavailable as error:
                log.warning("a lease could not be renewed, trying again: %s", error)
            except BusFatal as error:
                self._fatal = error
                self._bus.changes.notify()
                return

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                self._hurry.wait(), self._lease / (12 if self._holdings.owing else 3)
            )
        self._hurry.clear()

    async def _renew(self) -> None:
        async with self._renewing:
            if self._closed:
                return
            now = asyncio.get_running_loop().time()
            given_up = self._holdings.due(now)
            standing = await self._bus.writing.write(
                lambda connection: sqlite_group.renew(
                    connection,
                    self._group,
                    self._member,
                    self._topics,
                    self._bus.topics,
                    given_up,
                    self._bus.now(),
                    int(self._lease * 1000),
                )
            )
            if self._holdings.take(standing, now + self._lease):
                self._bus.changes.notify()
                if self._holdings.owing:
                    self._hurry.set()

    def _check(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        if self._closed:
            raise BusFatal("the reader is closed")
