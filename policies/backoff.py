"""How long to wait before the next attempt: exponential, with full jitter."""

from __future__ import annotations

from collections.abc import Callable, Iterator


def delays(initial: float, maximum: float, random: Callable[[], float]) -> Iterator[float]:
    """Waits in seconds, without end.

    Each lies between 0 and a ceiling that starts at `initial`, doubles, and stops at `maximum`.
    Full jitter keeps the members of a group, which all saw the backend fail at once, from coming
    back at once. `random` gives numbers in [0, 1).
    """
    ceiling = min(initial, maximum)
    while True:
        yield ceiling * random()
        ceiling = min(ceiling * 2, maximum)


def patient(delay: float, retry_after: float | None, maximum: float) -> float:
    """`delay`, or longer if the backend asked for it, but never more than `maximum`: how long a
    sink may be silent is for its operator to say and not for its peer."""
    return min(max(delay, retry_after or 0.0), maximum)
