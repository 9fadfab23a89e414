"""The garbage collector of a process that routes or delivers."""

from __future__ import annotations

import gc
from typing import Final

_ALLOCATIONS: Final = 50_000
"""Of objects that are still there, from one collection to the next. A batch holds as many for a
moment, all of which go without the collector: they are in no cycles. With Python's own 700 it looks
through them again and again, for a tenth of the processor time of a router on Kafka (measured with
`hookbus bench --only bus`)."""


def collect_rarely() -> None:
    """Call once everything is loaded: that stays, and later collections need not look at it."""
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, *gc.get_threshold()[1:])
