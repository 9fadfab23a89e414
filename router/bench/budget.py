"""How much a benchmark may do."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Budget(Struct, frozen=True, kw_only=True):
    """Work, not time, where the figure needs enough of it; durations in seconds."""

    rounds: int
    """How often each candidate takes its turn."""
    seconds: float
    """How long one turn in memory takes at least."""
    bus_sessions: int
    """Sessions (14 events each) that a candidate copies in one turn on a bus."""
    worker_sessions: int
    """Sessions that are there for the workers before they start."""
    load_seconds: float
    """How long the load that is sustained is looked for, before the latency is measured."""
    latency_seconds: float
    memory_marks: tuple[int, int]
    """Events after which the memory of a process is read."""
    pending: tuple[int, ...]
    """Numbers of open elicitation requests."""


FULL: Final = Budget(
    rounds=7,
    seconds=0.25,
    bus_sessions=1_000,
    worker_sessions=4_000,
    load_seconds=4.0,
    latency_seconds=8.0,
    memory_marks=(100_000, 500_000),
    pending=(0, 1_000, 10_000, 100_000),
)
QUICK: Final = Budget(
    rounds=1,
    seconds=0.0,
    bus_sessions=10,
    worker_sessions=10,
    load_seconds=0.2,
    latency_seconds=0.2,
    memory_marks=(500, 1_000),
    pending=(0, 10),
)
"""Shows that everything works; its figures say nothing."""
