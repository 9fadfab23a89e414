"""How fast records are sent again: pure."""

from __future__ import annotations

from typing import Final

_PORTION: Final = 100
_PORTIONS_A_SECOND: Final = 10


def portion(rate: float | None) -> int:
    """How many records are sent at once: few enough that a rate (records a second) is smooth."""
    if rate is None:
        return _PORTION
    return max(1, min(_PORTION, int(rate / _PORTIONS_A_SECOND)))


def wait(sent: int, rate: float | None, elapsed: float) -> float:
    """Seconds to wait before more may be sent, `elapsed` seconds after the start and with `sent`
    records sent since."""
    return 0.0 if rate is None else max(0.0, sent / rate - elapsed)
