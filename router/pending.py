"""Where the memory of a partition comes from when the partition does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hookbus.policies.correlation import Change
from hookbus.router.memory import Memory
from hookbus.router.types import Bus, Partition, Reader


class PendingStore:
    """The memory of the partitions that a reader holds; pending requests are restored from their
    changelogs.

    `changelogs` maps a changelog to the ingress topic that it is partitioned like; `empty` makes
    the memory of a partition of which nothing is known.
    """

    def __init__(
        self, bus: Bus, changelogs: Mapping[str, str], empty: Callable[[], Memory]
    ) -> None:
        self._bus = bus
        self._changelog_of = {topic: changelog for changelog, topic in changelogs.items()}
        self._empty = empty
        self._held: dict[Partition, tuple[object | None, Memory]] = {}

    async def of(self, reader: Reader, partition: Partition) -> Memory:
        """The state for the present assignment of the partition. Raises BusUnavailable."""
        assignment = reader.assignment(partition)
        held = self._held.get(partition)
        if held is not None and assignment is not None and held[0] is assignment:
            return held[1]
        self._forget_lost(reader)
        restored = await self._restore(partition)
        self._held[partition] = (assignment, restored)
        return restored

    async def _restore(self, partition: Partition) -> Memory:
        restored = self._empty()
        changelog = self._changelog_of[partition.topic]
        scan = self._bus.scan(changelog, follow=False, partition=partition.number)
        async for record in scan:
            restored.pending.restore(Change(record.key or b"", record.value))
        return restored

    def _forget_lost(self, reader: Reader) -> None:
        for partition, (assignment, _) in list(self._held.items()):
            if reader.assignment(partition) is not assignment:
                del self._held[partition]
