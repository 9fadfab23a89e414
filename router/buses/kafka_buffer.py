"""What a Kafka reader holds: records read ahead, and one watermark for each partition."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from hookbus.router.buses.kafka_record import record_of
from hookbus.router.types import Partition, Record
from hookbus.router.watermark import Watermark

_RECORDS: Final = 2000
_BYTES: Final = 16 * 1024 * 1024


class Held:
    """A partition during one assignment."""

    __slots__ = ("buffered", "committed", "mark")

    def __init__(self) -> None:
        self.mark = Watermark()
        self.buffered = 0
        self.committed: int | None = None


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

    def begin(self, homes: Iterable[Partition]) -> None:
        """A new assignment."""
        self.held = {home: self.held.get(home, Held()) for home in homes}

    def end(self) -> None:
        """The assignment is over: forget its records and its watermarks."""
        self.drop()
        self.held = {}

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
