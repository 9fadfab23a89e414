"""How often something can be done in a second: the median of several rounds, taken in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Final

from msgspec import Struct

ROUNDS: Final = 7
SECONDS: Final = 0.25
"""How long one round of one candidate takes at least."""

Work = Callable[[], int]
"""Does some work and returns how many items it has done."""


class Result(Struct, frozen=True):
    """One benchmark: items per second, and how many times that is of what it is compared with."""

    name: str
    per_second: float
    ratios: dict[str, float]


def compare(name: str, work: Work, others: Mapping[str, Work]) -> Result:
    """Measure `work` against the others, round by round, so that a change in the machine's speed
    meets all of them; the ratios are medians over the rounds."""
    candidates = {name: work, **others}
    for each in candidates.values():
        each()  # what is made at the first use isn't measured
    rounds = [{who: _rate(what) for who, what in candidates.items()} for _ in range(ROUNDS)]
    return Result(
        name,
        round(median(rates[name] for rates in rounds), 1),
        {other: round(median(r[name] / r[other] for r in rounds), 2) for other in others},
    )


def _rate(work: Work) -> float:
    done, started = 0, time.perf_counter()
    while True:
        done += work()
        elapsed = time.perf_counter() - started
        if elapsed >= SECONDS:
            return done / elapsed
