"""The stdout sink: the same lines as in a file, to a stream that somebody reads."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Sequence
from typing import BinaryIO, Final

from hookbus.policies.faults import Fault
from hookbus.router.sinks.contract import Delivery, out_of_time
from hookbus.router.sinks.jsonlines import line
from hookbus.router.types import Record

_NOTHING: Final = memoryview(b"")


class StdoutSink:
    """Writes record values to `stream`, which has a file descriptor, one a line.

    Records are delivered when the operating system has them. It never blocks the loop, whoever
    reads or doesn't, and several tasks may deliver through one: they take turns line by line. So a
    stream has one of these, whatever prints to it.
    """

    concurrent = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._file = stream.fileno()
        self._rest = _NOTHING  # of a line that was begun and could not be ended in time
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Let what was printed before come before."""
        self._stream.flush()

    async def deliver(self, records: Sequence[Record], timeout: float) -> Delivery:  # noqa: ASYNC109
        """See Sink. A reader that went away is a route fault."""
        delivered = 0
        try:
            async with asyncio.timeout(timeout):
                for record in records:
                    await self._print(line(record))
                    delivered += 1
        except TimeoutError:
            return out_of_time(delivered)
        except OSError:
            return Delivery(delivered, Fault("route", "io_error"))
        return Delivery(delivered)

    async def close(self) -> None:
        """The stream belongs to whoever passed it in."""

    async def _print(self, data: bytes) -> None:
        async with self._turn:
            await self._finish()
            self._rest = memoryview(data)
            try:
                await self._finish()
            finally:
                if len(self._rest) == len(data):  # not begun, so nothing to finish
                    self._rest = _NOTHING

    async def _finish(self) -> None:
        while self._rest:
            await self._writable()
            # No more than a pipe that is ready is sure to take without blocking.
            written = os.write(self._file, self._rest[: select.PIPE_BUF])
            self._rest = self._rest[written:]

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_writer(self._file, ready.set)
        except PermissionError:
            return  # a regular file, which can't be waited for and doesn't block
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._file)
