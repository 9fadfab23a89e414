"""The file sink: JSON Lines, fsynced before a record counts as delivered."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hookbus.policies.faults import Fault
from hookbus.router.errors import StartupError
from hookbus.router.sinks.appendfile import AppendFile, Attempt
from hookbus.router.sinks.contract import Delivery, out_of_time
from hookbus.router.sinks.jsonlines import line
from hookbus.router.sinks.threads import in_thread
from hookbus.router.types import Record

logger = logging.getLogger("hookbus.sink")

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_PATIENCE: Final = 5.0  # seconds that `close` gives a disk to answer


class FileSink:
    """Appends record values to the file at `path`, one a line, created with mode 0600; the claim
    to it is on `path.lock`.

    With `rotate_bytes` a file that a line would take past that size is renamed first, and the last
    `rotate_keep` are kept as `path.1`, `path.2` … An append that runs out of time is taken back, so
    what is reported as not delivered is not in the file either.
    """

    concurrent = False

    def __init__(
        self, path: Path | str, *, rotate_bytes: int | None = None, rotate_keep: int = 5
    ) -> None:
        if rotate_keep < 1 or (rotate_bytes is not None and rotate_bytes < 1):
            raise ValueError("rotate_bytes and rotate_keep are at least 1")
        self._file = AppendFile(Path(path), rotate_bytes, rotate_keep)
        self._path = path
        self._busy: asyncio.Future[Fault | None] | None = None

    async def open(self) -> None:
        """Claim and repair the file. Raises StartupError if another process writes it, or if it
        can't be one that this sink writes."""
        try:
            await in_thread(self._file.open)
        except OSError as error:
            logger.warning("file sink %s: %s", self._path, fault_of(error).reason)

    async def deliver(self, records: Sequence[Record], timeout: float) -> Delivery:  # noqa: ASYNC109
        """See Sink. Every line that counts is on the disk, and so is the file's name."""
        deadline = asyncio.get_running_loop().time() + timeout
        if not await self._idle(deadline):
            return out_of_time(0)
        lines = [line(record) for record in records]
        attempt = Attempt()
        self._busy = in_thread(lambda: self._append(lines, attempt))
        try:
            idle = await self._idle(deadline)
        finally:
            delivered = attempt.give_up()
        if delivered == len(records):
            return Delivery(delivered)
        return Delivery(delivered, self._busy.result()) if idle else out_of_time(delivered)

    async def close(self) -> None:
        """Let go of the file; one whose disk doesn't answer is left to the end of the process."""
        if await self._idle(asyncio.get_running_loop().time() + _PATIENCE):
            await in_thread(self._file.close)

    async def _idle(self, deadline: float) -> bool:
        """Wait for the thread of the current or an abandoned append, which can't be interrupted."""
        if self._busy is None:
            return True
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        done, _ = await asyncio.wait({self._busy}, timeout=left)
        return bool(done)

    def _append(self, lines: Sequence[bytes], attempt: Attempt) -> Fault | None:
        try:
            self._file.append(lines, attempt)
        except StartupError as error:  # it came to be unsuitable while we run
            logger.warning("%s", error)
            return Fault("route", "io_error")
        except OSError as error:
            return fault_of(error)
        return None


def fault_of(error: OSError) -> Fault:
    """What an error of the disk says of a delivery: always something about the route."""
    return Fault("route", "disk_full" if error.errno in _FULL else "io_error")
