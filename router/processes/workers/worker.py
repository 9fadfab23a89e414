"""The process of one worker: a part of the service, under a supervisor.

It does what the supervisor says, reports how it is, and ends when the supervisor is gone. Signals
that a terminal or a platform sends to all processes stop it once, however many come.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from importlib.metadata import version
from typing import Final

import msgspec

from hookbus.router.errors import HookbusError
from hookbus.router.processes.event_loop import EventLoop, runner
from hookbus.router.processes.garbage import collect_rarely
from hookbus.router.processes.loops import why
from hookbus.router.processes.service import EXIT_STARTUP, Service
from hookbus.router.processes.workers.channel import (
    Apply,
    Channel,
    Discard,
    Order,
    Prepare,
    Ready,
    Report,
    Start,
    Stop,
)
from hookbus.router.processes.workers.merged_metrics import families
from hookbus.router.telemetry import logs
from hookbus.router.telemetry.logs import where

_log = logging.getLogger("hookbus.worker")

EXIT_REPLACE: Final = 1
"""Nothing is wrong with the whole, and another worker may do better."""
_REPORTS: Final = 1.0
"""Seconds between two reports: what is counted in between is lost if the process is killed."""
CLOSING: Final = 15.0
"""Seconds beyond the grace period in which everything is closed."""


def main() -> int:
    """The arguments are the descriptor of the worker's end of the channel, and the event loop."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor reads the configuration again
    collect_rarely()
    with runner(msgspec.convert(sys.argv[2], EventLoop)) as loop:
        return loop.run(_work(socket.socket(fileno=int(sys.argv[1]))))


async def _work(end: socket.socket) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    channel: Channel[Order] = await Channel.open(end, Order)
    try:
        start = await channel.receive()
    except msgspec.MsgspecError:
        start = None
    if not isinstance(start, Start) or start.version != version("hookbus"):
        logs.configure()
        _log.error("the supervisor is another version of hookbus, or gone; restart the service")
        return EXIT_STARTUP
    logs.configure(start.log_level, worker=start.name)
    return await _Worker(start, channel, stop).run()


class _Worker:
    def __init__(self, start: Start, channel: Channel[Order], stop: asyncio.Event) -> None:
        self._channel = channel
        self._stop = stop
        self._grace = start.config.shutdown_grace
        self._service = Service(start.config, start.part, start.number)
        self._preparing: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Returns the exit code."""
        obeying = asyncio.create_task(self._obey())
        obeying.add_done_callback(lambda _: self._stop.set())
        reporting = asyncio.create_task(self._report_on())
        try:
            code = await self._service.run(self._stop)
        finally:
            for task in (obeying, reporting, self._preparing):
                if task is not None:
                    task.cancel()
        (fault,) = await asyncio.gather(obeying, return_exceptions=True)
        if isinstance(fault, Exception):
            _log.error("a fault in hookbus", extra={"why": why(fault), "where": where(fault)})
            code = code or EXIT_REPLACE
        self._report()
        await self._channel.close()
        return code

    async def _obey(self) -> None:
        while (order := await self._channel.receive()) is not None:
            match order:
                case Prepare():
                    self._preparing = asyncio.create_task(self._prepare(order))
                case Apply():
                    self._service.apply()
                case Discard():
                    await self._discard()
                case Stop():
                    self._stop.set()
        _log.error("the supervisor is gone, stopping")
        # Nobody is left who would kill a worker that doesn't stop.
        signal.setitimer(signal.ITIMER_REAL, self._grace + CLOSING)

    async def _prepare(self, order: Prepare) -> None:
        try:
            await self._service.prepare(order.config, order.part)
        except HookbusError as error:
            if not self._stop.is_set():  # or the next worker starts under whatever holds then
                self._channel.send(Ready(order.number, str(error).splitlines()))
        else:
            self._channel.send(Ready(order.number, []))

    async def _discard(self) -> None:
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait([self._preparing])
        await self._service.discard()

    async def _report_on(self) -> None:
        while True:
            if self._channel.idle:  # or the supervisor is not listening just now
                self._report()
            await asyncio.sleep(_REPORTS)

    def _report(self) -> None:
        service = self._service
        health = service.health
        self._channel.send(Report(families(service.registry), health.unhealthy(), health.unready()))


if __name__ == "__main__":
    sys.exit(main())
