"""Where the pending requests of a partition come from when the partition does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hookbus.policies.correlation import Change, PendingRequests
from hookbus.router.types import Bus, Partition, Reader


class PendingStore:
    """The pending requests of the partitions that a reader holds, restored from their changelogs.

    `changelogs` maps a changelog to the ingress topic that it is partitioned like; `empty` makes
    the pending requests of a partition that has none.
    """

    def __init__(
        self, bus: Bus, changelogs: Mapping[str, str], empty: Callable[[], PendingRequests]
    ) -> None:
        self._bus = bus
        self._changelog_of = {topic: changelog for changelog, topic in changelogs.items()}
        self._empty = empty
        self._held: dict[Partition, tuple[object | None, PendingRequests]] = {}

    async def of(self, reader: Reader, partition: Partition) -> PendingRequests:
        """The state for the present assignment of the partition. Raises BusUnavailable."""
        assignment = reader.assignment(partition)
        held = self._held.get(partition)
        if held is not None and assignment is not None and held[0] is assignment:
            return held[1]
        self._forget_lost(reader)
        restored = await self._restore(partition)
        self._held[partition] = (assignment, restored)
        return restored

    async def _restore(self, partition: Partition) -> PendingRequests:
        restored = self._empty()
        changelog = self._changelog_of[partition.topic]
        scan = self._bus.scan(changelog, follow=False, partition=partition.number)
        async for record in scan:
            restored.restore(Change(record.key or b"", record.value))
        return restored

    def _forget_lost(self, reader: Reader) -> None:
        for partition, (assignment, _) in list(self._held.items()):
            if reader.assignment(partition) is not assignment:
                del self._held[partition]
