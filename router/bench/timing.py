"""How often something can be done in a second: the median of several rounds, taken in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from msgspec import Struct

from hookbus.router.bench.budget import Budget

Work = Callable[[], int]
"""Does some work and returns how many items it has done."""

Rates = Mapping[str, float]
"""What each candidate did in one round, in items a second."""


class Result(Struct, frozen=True, omit_defaults=True):
    """One benchmark: items per second, and how many times that is of what it is compared with.

    A latency has `p50_ms` and `p99_ms`; a memory has the resident megabytes after so many events
    (and at the start), and the growth between the last two, as a part of the first of them.
    """

    name: str
    per_second: float
    ratios: dict[str, float]
    p50_ms: float | None = None
    p99_ms: float | None = None
    rss_mb: dict[str, float] | None = None
    growth: float | None = None


def compare(name: str, work: Work, others: Mapping[str, Work], budget: Budget) -> Result:
    """Measure `work` against the others, round by round, so that a change in the machine's speed
    meets all of them; the ratios are medians over the rounds."""
    return summary(name, others, alternate({name: work, **others}, budget))


def alternate(works: Mapping[str, Work], budget: Budget) -> list[Rates]:
    """The rates of all, round by round."""
    for work in works.values():
        work()  # what is made at the first use isn't measured
    return [
        {who: rate(work, budget.seconds) for who, work in works.items()}
        for _ in range(budget.rounds)
    ]


def summary(name: str, others: Iterable[str], rounds: Sequence[Rates]) -> Result:
    """The median of one candidate's rates, and those of its ratios to others in the same round."""
    return Result(
        name,
        round(median(rates[name] for rates in rounds), 1),
        {who: round(median(rates[name] / rates[who] for rates in rounds), 2) for who in others},
    )


def rate(work: Work, seconds: float) -> float:
    """How many items a second are done, over at least so many seconds and one turn."""
    done, started = 0, time.perf_counter()
    while True:
        done += work()
        elapsed = time.perf_counter() - started
        if elapsed >= seconds:
            return done / elapsed
