"""What a member of the embedded bus holds: its leased partitions and where it is in each."""

from __future__ import annotations

from collections.abc import Callable

from hookbus.router.buses.sqlite_group import Lease, Standing
from hookbus.router.types import Partition
from hookbus.router.watermark import Watermark


class Held:
    """A partition during one lease. `yield_by` is set once it is owed to another member: nothing
    more is read from it, and it goes when all is settled, or at that time at the latest."""

    __slots__ = ("epoch", "fetch", "home", "mark", "partition", "yield_by")

    def __init__(self, partition: int, home: Partition, lease: Lease) -> None:
        self.partition = partition
        self.home = home
        self.epoch = lease.epoch
        self.fetch = lease.next
        self.mark = Watermark()
        self.yield_by: float | None = None

    def is_due(self, now: float) -> bool:
        """Whether it can go to whom it is owed."""
        if self.yield_by is None:
            return False
        return self.mark.outstanding == 0 or self.yield_by <= now


class Holdings:
    """The leases of one member, by partition id; `home` names a partition."""

    def __init__(self, home: Callable[[int], Partition]) -> None:
        self._home = home
        self._turn = 0
        self.held: dict[int, Held] = {}
        self.generation = -1

    @property
    def owing(self) -> bool:
        return any(held.yield_by is not None for held in self.held.values())

    def homes(self) -> dict[Partition, Held]:
        return {held.home: held for held in self.held.values()}

    def due(self, now: float) -> list[int]:
        """The partition ids to give up now."""
        return [held.partition for held in self.held.values() if held.is_due(now)]

    def still(self, held: Held) -> bool:
        """Whether the lease goes on."""
        return self.held.get(held.partition) is held

    def lose(self, held: Held) -> None:
        if self.still(held):
            del self.held[held.partition]

    def readable(self) -> list[Held]:
        """What may be read; each partition comes first in its turn, so that none starves."""
        found = [held for held in self.held.values() if held.yield_by is None]
        self._turn += 1
        first = self._turn % len(found) if found else 0
        return found[first:] + found[:first]

    def take(self, standing: Standing, yield_by: float) -> bool:
        """Bring this in line with the leases; whether anything changed."""
        changed = standing.generation != self.generation
        self.generation = standing.generation
        for held in list(self.held.values()):
            lease = standing.leases.get(held.partition)
            if lease is None or lease.epoch != held.epoch:
                self.lose(held)
                changed = True
        for partition, lease in standing.leases.items():
            if partition not in self.held:
                self.held[partition] = Held(partition, self._home(partition), lease)
                changed = True
            held = self.held[partition]
            if partition not in standing.surplus:
                held.yield_by = None
            elif held.yield_by is None:
                held.yield_by = yield_by
                changed = True
        return changed
