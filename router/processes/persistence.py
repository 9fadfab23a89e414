"""Calls to a bus that may be away: repeated with backoff until they go through."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from hookbus.policies.backoff import delays
from hookbus.router.errors import BusUnavailable
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress

_log = logging.getLogger("hookbus.bus")

FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 5.0

T = TypeVar("T")


class Persistence:
    """Repeats the calls of one loop, and keeps its metrics and its readiness true meanwhile."""

    def __init__(self, loop: str, metrics: Metrics, progress: Progress) -> None:
        self._loop = loop
        self._metrics = metrics
        self._progress = progress
        self._failing = 0
        """Calls that the bus doesn't answer; the others don't make the loop ready."""

    async def __call__(self, call: Callable[[], Awaitable[T]]) -> T:
        """Raises whatever `call` raises, except BusUnavailable."""
        failed = False
        try:
            for delay in delays(FIRST_DELAY, LONGEST_DELAY, random.random):
                try:
                    result = await call()
                except BusUnavailable as error:
                    if not failed:
                        self._failing += 1
                        why = {"loop": self._loop, "why": str(error)}
                        _log.warning("bus unavailable, retrying", extra=why)
                    failed = True
                    self._metrics.loops.bus_unavailable(self._loop)
                    self._progress.bus_answers(False)
                    await asyncio.sleep(delay)
                else:
                    self._progress.bus_answers(self._failing == failed)
                    if failed:
                        _log.info("bus is back", extra={"loop": self._loop})
                    return result
        finally:
            self._failing -= failed
        raise AssertionError("delays never end")
