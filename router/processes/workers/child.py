"""A worker as its supervisor sees it: a process, and a channel to it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Callable
from typing import Final

import msgspec

from hookbus.router.configuration.config import Config
from hookbus.router.processes.part import Part
from hookbus.router.processes.workers.channel import (
    Channel,
    Order,
    Prepare,
    Ready,
    Report,
    Start,
    Word,
)

_log = logging.getLogger("hookbus.supervisor")

# Without -P the working directory would come first on the path of imports.
_COMMAND: Final = (sys.executable, "-P", "-m", "hookbus.router.processes.workers.worker")


class Child:
    """One process, from its start to its end. `now` is a monotonic clock, in seconds."""

    def __init__(
        self, process: asyncio.subprocess.Process, channel: Channel[Word], now: Callable[[], float]
    ) -> None:
        self._process = process
        self._channel = channel
        self._now = now
        self._asked = 0
        self._answer: asyncio.Future[list[str]] | None = None
        self.report: Report | None = None
        self.started = self.heard = now()
        """When it started, and when it was heard of last."""

    @classmethod
    async def start(cls, order: Start, now: Callable[[], float]) -> Child:
        """Raises OSError if there is no room for another process."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *_COMMAND,
                str(theirs.fileno()),
                order.config.event_loop,
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
            )
        channel: Channel[Word] = await Channel.open(ours, Word)
        channel.send(order)
        _log.info("worker started", extra={"worker": order.name, "pid": process.pid})
        return cls(process, channel, now)

    def tell(self, order: Order) -> None:
        self._channel.send(order)

    async def prepare(self, config: Config, part: Part) -> list[str]:
        """What prevents it from going over to this configuration. Nothing prevents a worker that
        ends meanwhile: the next one starts under whatever holds then."""
        if self._process.returncode is not None:  # nobody is left to answer
            return []
        self._answer = asyncio.get_running_loop().create_future()
        self._asked += 1
        self._channel.send(Prepare(self._asked, config, part))
        return await self._answer

    async def ended(self) -> int:
        """Listen until it ends; returns its exit code, or the negative number of the signal that
        ended it."""
        while (word := await self._hear()) is not None:
            self.heard = self._now()
            match word:
                case Report():
                    self.report = word
                case Ready() if word.number == self._asked:
                    self._answered(word.problems)
        code = await self._process.wait()
        self._answered([])
        await self._channel.close()
        return code

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def _hear(self) -> Word | None:
        try:
            return await self._channel.receive()
        except msgspec.MsgspecError:  # after an upgrade of its files under a running supervisor
            self.kill()
            return None

    def _answered(self, problems: list[str]) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(problems)
