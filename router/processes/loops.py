"""Loops that run as tasks, each with a stop of its own: one can end while the others go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import Struct

from hookbus.router.errors import HookbusError
from hookbus.router.telemetry.logs import where

_log = logging.getLogger("hookbus.service")

Loop = Callable[[asyncio.Event], Coroutine[Any, Any, None]]
"""Runs until the event is set; what is in hand then is settled first."""

Close = Callable[[], Awaitable[None]]


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do the work, but give it up once `stop` is set; whether it was done. Raises what it does."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        done = working.done() or not working.cancel()
        if not done:
            await asyncio.gather(working, return_exceptions=True)
    if done:
        working.result()
    return done


class _Running(Struct, frozen=True):
    task: asyncio.Task[None]
    stop: asyncio.Event
    close: Close | None


class Loops:
    """The loops of a process, by name. `broken` is set once one has ended that nobody stopped."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._running: dict[str, _Running] = {}
        self._stopping: set[asyncio.Task[bool]] = set()
        self.broken = asyncio.Event()

    @property
    def stopping(self) -> tuple[asyncio.Task[bool], ...]:
        """What `stop` returned of the loops that are not stopped yet."""
        return tuple(self._stopping)

    def start(self, name: str, loop: Loop, close: Close | None = None) -> None:
        """Run a loop; `close` is called when it has ended, however it did."""
        stop = asyncio.Event()
        task = asyncio.create_task(loop(stop), name=name)
        self._running[name] = _Running(task, stop, close)
        task.add_done_callback(lambda ended: self._ended(name, ended))

    def stop(self, name: str) -> asyncio.Task[bool]:
        """Stop one loop. The task ends when the loop has, and what it held is closed; it tells
        whether that went without a fault, and within the grace period."""
        stopping = asyncio.create_task(self._stop(name, self._running.pop(name)))
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)
        return stopping

    async def stopped(self) -> None:
        """Wait until all are that have been told to."""
        if self._stopping:
            await asyncio.wait(self._stopping)

    async def end(self) -> bool:
        """Stop all, at once; whether that went without a fault."""
        for name in list(self._running):
            self.stop(name)
        return all(await asyncio.gather(*self._stopping))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        running = self._running.get(name)
        if running is not None and running.task is task:
            self.broken.set()

    async def _stop(self, name: str, running: _Running) -> bool:
        running.stop.set()
        _, late = await asyncio.wait([running.task], timeout=self._grace)
        for task in late:
            task.cancel()
        (fault,) = await asyncio.gather(running.task, return_exceptions=True)
        if fault is not None:
            _log.error(
                "loop ended by a fault",
                extra={"loop": name, "why": why(fault), "where": where(fault)},
            )
        if running.close is not None:
            await running.close()
        return fault is None


def why(fault: BaseException) -> str:
    """What may be said of a fault: the text of our own errors, and of others the type."""
    if isinstance(fault, BaseExceptionGroup):
        return ", ".join(why(inner) for inner in fault.exceptions)
    if isinstance(fault, asyncio.CancelledError):
        return "not finished within the grace period; what was in hand comes again"
    return str(fault) if isinstance(fault, HookbusError) else type(fault).__name__
