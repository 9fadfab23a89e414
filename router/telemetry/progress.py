"""Whether the loops move: what /healthz and /readyz answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hookbus.router.types import Partition

Clock = Callable[[], float]
"""Seconds, monotonic."""


class Progress:
    """The progress of one loop, partition by partition.

    A partition with records in hand moves when a record of it is settled, and when an attempt at it
    or a call to the bus ends, well or badly: who waits for a backend or for the bus is alive. One
    that does nothing of that for `patience` seconds longer than it may is stuck.
    """

    def __init__(self, clock: Clock, patience: float = 120.0) -> None:
        self._clock = clock
        self._patience = patience
        self._due: dict[Partition, float] = {}
        """When a partition counts as stuck."""
        self._joined = False
        self._bus_ok = False
        self._measurable = True
        self._held_up: set[Partition | None] = set()

    def joined(self) -> None:
        """The loop is a member of its group, and the bus answers."""
        self._joined = self._bus_ok = True

    def bus_answers(self, answers: bool) -> None:
        self._bus_ok = answers
        if not answers:
            now = self._clock()
            self._due = {home: max(due, now + self._patience) for home, due in self._due.items()}

    def measured(self, answers: bool) -> None:
        """Whether the bus told the lag: an idle loop would not notice that the bus is away."""
        self._measurable = answers

    def took(self, partition: Partition) -> None:
        """Records of a partition are in hand."""
        self._due.setdefault(partition, self._clock() + self._patience)

    def moved(self, partition: Partition, *, expected: float = 0.0) -> None:
        """`expected` is for how many seconds it may rightly not move from now on."""
        if partition in self._due:
            self._due[partition] = self._clock() + self._patience + expected

    def done(self, partition: Partition) -> None:
        """Nothing of a partition is in hand any more."""
        self._due.pop(partition, None)

    def held_up(self, lane: Partition | None, *, by_route_fault: bool) -> None:
        """Whether a lane of a sink waits for its backend."""
        (self._held_up.add if by_route_fault else self._held_up.discard)(lane)

    def stuck(self) -> list[Partition]:
        now = self._clock()
        return [partition for partition, due in self._due.items() if due < now]

    @property
    def ready(self) -> bool:
        """Member of the group, and the bus answers."""
        return self._joined and self._bus_ok and self._measurable

    @property
    def delivering(self) -> bool:
        """Nothing waits for the backend."""
        return not self._held_up


class Health:
    """The progress of all loops of a process, as it is at each look; `required` names those whose
    backend must answer for the process to be ready: the audit sinks."""

    def __init__(self, loops: Mapping[str, Progress], required: Iterable[str]) -> None:
        self._loops = loops
        self._required = frozenset(required)

    def require(self, loops: Iterable[str]) -> None:
        """From now on these are the audit sinks."""
        self._required = frozenset(loops)

    def unhealthy(self) -> list[str]:
        """Why the process should be restarted; empty if it should not."""
        return [
            f"{name}: no progress on {partition.topic}/{partition.number}"
            for name, progress in self._loops.items()
            for partition in progress.stuck()
        ]

    def unready(self) -> list[str]:
        """Why the process can't do its work now; empty if it can."""
        reasons = [
            f"{name}: not joined, or the bus does not answer"
            for name, progress in self._loops.items()
            if not progress.ready
        ]
        reasons += [
            f"{name}: an audit sink whose backend does not take events"
            for name, progress in self._loops.items()
            if name in self._required and not progress.delivering
        ]
        return reasons
