"""Tells those who wait for records that something may have changed."""

from __future__ import annotations

import asyncio


class Changes:
    """A counter that can be awaited. One event loop."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def awaited(self) -> bool:
        return bool(self._waiting)

    def notify(self) -> None:
        self.count += 1
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    async def after(self, seen: int, wait: float) -> None:
        """Return once `count` differs from `seen`, or after `wait` seconds."""
        if self.count != seen:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=wait)
        finally:
            self._waiting.discard(waiter)
            waiter.cancel()
