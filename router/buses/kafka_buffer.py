"""What a Kafka reader holds: records read ahead, and one watermark for each partition."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from hookbus.router.buses.kafka_record import record_of
from hookbus.router.types import Output, Partition, Record, Settlement
from hookbus.router.watermark import Watermark

_BYTES: Final = 16 * 1024 * 1024


class Held:
    """A partition during one assignment."""

    __slots__ = ("buffered", "committed", "mark", "ready")

    def __init__(self) -> None:
        self.mark = Watermark()
        self.buffered = 0
        self.committed: int | None = None
        self.ready = True  # whether records may be fetched


class Work(Struct, frozen=True):
    """What one settlement does to one partition."""

    home: Partition
    held: Held
    offsets: set[int]
    outputs: list[Output]

    @property
    def position(self) -> int | None:
        """Where the group is in this partition once the work is done."""
        return self.held.mark.after(self.offsets)

    def done(self) -> None:
        self.held.mark.settle(self.offsets)


class _Chunk:
    """Records of one partition that were fetched together, as the client has them."""

    __slots__ = ("at", "home", "messages")

    def __init__(self, home: Partition, messages: Sequence[Any]) -> None:
        self.home = home
        self.messages = messages
        self.at = 0

    def __len__(self) -> int:
        return len(self.messages) - self.at

    def take(self, limit: int) -> Sequence[Any]:
        start, self.at = self.at, min(self.at + limit, len(self.messages))
        return self.messages[start : self.at]


class Buffer:
    """The partitions of one assignment, and at most `records` of their records."""

    def __init__(self, records: int) -> None:
        self._records = records
        self.held: dict[Partition, Held] = {}
        self._chunks: deque[_Chunk] = deque()
        self._count = 0
        self._bytes = 0
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return self._count

    @property
    def room(self) -> int:
        """How many records may still come."""
        return 0 if self._bytes >= _BYTES else self._records - self._count

    async def wait_for_room(self, seconds: float) -> None:
        """Return once something was taken, or after `seconds`."""
        self._room.clear()
        if self.room <= 0:
            waiter = asyncio.ensure_future(self._room.wait())
            try:
                await asyncio.wait([waiter], timeout=seconds)
            finally:
                waiter.cancel()

    def still(self, home: Partition, held: Held) -> bool:
        """Whether the assignment that `held` belongs to goes on."""
        return self.held.get(home) is held

    def works(self, settlements: Iterable[Settlement]) -> tuple[list[Work], list[Output]]:
        """What there is to do, and all its outputs in the order of the settlements."""
        works: dict[Partition, Work] = {}
        outputs: list[Output] = []
        for settlement in settlements:
            record = settlement.record
            home = record.home
            held = self.held.get(home)
            if held is None or not held.mark.holds(record):
                continue  # of a former assignment, or settled before
            work = works.get(home)
            if work is None:
                work = works[home] = Work(home, held, set(), [])
            if record.offset in work.offsets:
                continue  # twice in this call
            work.offsets.add(record.offset)
            work.outputs.extend(settlement.outputs)
            outputs += settlement.outputs
        return list(works.values()), outputs

    def begin(self, homes: Iterable[Partition]) -> None:
        """A new assignment."""
        self.held = {home: self.held.get(home, Held()) for home in homes}

    def end(self) -> None:
        """The assignment is over: forget its records and its watermarks."""
        self.drop()
        self.held = {}

    def restart(self, home: Partition) -> Held:
        """End the assignment of one partition and begin another one."""
        kept = [chunk for chunk in self._chunks if chunk.home != home]
        self._clear()
        for chunk in kept:
            self._add(chunk)
        self.held[home] = Held()
        self._room.set()
        return self.held[home]

    def drop(self) -> None:
        """Forget the records that nobody has received."""
        self._clear()
        for held in self.held.values():
            held.buffered = 0
        self._room.set()

    def keep(self, home: Partition, messages: Sequence[Any]) -> None:
        """Add what was fetched. Never refused, even if the listener should hear of an assignment
        after its first records: the watermark would take what wasn't received for a hole."""
        held = self.held.setdefault(home, Held())
        held.buffered += len(messages)
        self._add(_Chunk(home, messages))

    def take(self, limit: int) -> list[Record]:
        """At most `limit` records; they count as received from now on."""
        taken: list[Record] = []
        while self._chunks and len(taken) < limit:
            chunk = self._chunks[0]
            messages = chunk.take(limit - len(taken))
            if not chunk:
                self._chunks.popleft()
            self._count -= len(messages)
            self._bytes -= _size(messages)
            records = [record_of(message) for message in messages]
            held = self.held[chunk.home]
            held.buffered -= len(records)
            held.mark.take(records)
            taken += records
        if taken:
            self._room.set()
        return taken

    def _add(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        self._count += len(chunk)
        self._bytes += _size(chunk.messages[chunk.at :])

    def _clear(self) -> None:
        self._chunks.clear()
        self._count = self._bytes = 0


def _size(messages: Sequence[Any]) -> int:
    return sum(len(message.value or b"") for message in messages)
