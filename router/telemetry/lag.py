"""Shows how far the loops of a process are behind, and whether the bus tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from hookbus.router.errors import BusFatal, BusUnavailable
from hookbus.router.telemetry.loop_metrics import FORWARDER
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.types import Partition, Reader

_INTERVAL: Final = 2.0


class Lag:
    """Of the readers that are members when it looks, by loop. A loop that `progress` has is ready
    only if its lag can be measured."""

    def __init__(
        self,
        readers: Callable[[], Mapping[str, Reader]],
        progress: Mapping[str, Progress],
        metrics: Metrics,
    ) -> None:
        self._readers = readers
        self._progress = progress
        self._metrics = metrics
        self._shown: dict[str, frozenset[Partition]] = {}

    async def show(self, stop: asyncio.Event) -> None:
        """Until `stop` is set, even while the bus keeps it waiting for an answer."""
        showing = asyncio.create_task(self._show())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({showing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if showing.done():
                await showing  # it ends by a fault alone
        finally:
            showing.cancel()
            stopping.cancel()
            await asyncio.wait({showing, stopping})

    async def _show(self) -> None:
        while True:
            for loop, reader in self._readers().items():
                await self._measure(loop, reader)
            await asyncio.sleep(_INTERVAL)

    def forget(self, loop: str) -> None:
        """The loop has left its group."""
        self._metrics.loops.lag(loop, {}, self._shown.pop(loop, frozenset()))

    async def _measure(self, loop: str, reader: Reader) -> None:
        try:
            lag = await reader.lag()
        except BusUnavailable:
            lag = None
        except BusFatal:
            if self._left(loop, reader):
                return
            raise
        if self._left(loop, reader):
            return
        if loop in self._progress:
            self._progress[loop].measured(lag is not None)
        if lag is not None and loop == FORWARDER:
            self._metrics.loops.journal_pending(sum(lag.values()))
        elif lag is not None:
            self._metrics.loops.lag(loop, lag, self._shown.get(loop, frozenset()))
            self._shown[loop] = frozenset(lag)

    def _left(self, loop: str, reader: Reader) -> bool:
        """Whether it has left its group meanwhile."""
        return self._readers().get(loop) is not reader
