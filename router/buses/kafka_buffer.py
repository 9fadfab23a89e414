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

_RECORDS: Final = 2000
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
        for offset in self.offsets:
            self.held.mark.settled(offset)


class Buffer:
    """The partitions of one assignment, and a bounded number of their records."""

    def __init__(self) -> None:
        self.held: dict[Partition, Held] = {}
        self._records: deque[Record] = deque()
        self._bytes = 0
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._records)

    @property
    def room(self) -> int:
        """How many records may still come."""
        return 0 if self._bytes >= _BYTES else _RECORDS - len(self._records)

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
            home, offset = settlement.record.home, settlement.record.offset
            held = self.held.get(home)
            if held is None or not held.mark.holds(offset):
                continue  # of a former assignment, or settled before
            work = works.setdefault(home, Work(home, held, set(), []))
            if offset in work.offsets:
                continue  # received twice, in a former assignment and in this one
            work.offsets.add(offset)
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
        self._records = deque(record for record in self._records if record.home != home)
        self._bytes = sum(len(record.value or b"") for record in self._records)
        self.held[home] = Held()
        self._room.set()
        return self.held[home]

    def drop(self) -> None:
        """Forget the records that nobody has received."""
        self._records.clear()
        self._bytes = 0
        for held in self.held.values():
            held.buffered = 0
        self._room.set()

    def keep(self, home: Partition, messages: Sequence[Any]) -> None:
        """Add what was fetched. Never refused, even if the listener should hear of an assignment
        after its first records: the watermark would take what wasn't received for a hole."""
        held = self.held.setdefault(home, Held())
        for message in messages:
            record = record_of(message)
            self._records.append(record)
            self._bytes += len(record.value or b"")
        held.buffered += len(messages)

    def take(self, limit: int) -> list[Record]:
        """At most `limit` records; they count as received from now on."""
        taken: list[Record] = []
        while self._records and len(taken) < limit:
            record = self._records.popleft()
            self._bytes -= len(record.value or b"")
            held = self.held[record.home]
            held.buffered -= 1
            held.mark.received(record.offset)
            taken.append(record)
        if taken:
            self._room.set()
        return taken
