"""One connection to a SQLite file, in a thread of its own; SQLite's errors end here."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from hookbus.router.buses.sqlite_schema import prepare
from hookbus.router.errors import BusFatal, BusUnavailable, HookbusError, OutputTooLarge

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
    }
)


class SqliteFile:
    """Runs functions of a connection in a dedicated thread, so the event loop never blocks.

    Raises BusUnavailable while the file is locked, the disk is full or fails, and BusFatal if the
    file is not a bus, is damaged, or can't be opened.
    """

    def __init__(self, path: str | Path, *, busy_timeout: float, name: str) -> None:
        self._path = str(path)
        self._busy_timeout = busy_timeout
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"hookbus-{name}")
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    async def open(self) -> None:
        await self._run(self._connect)

    async def read(self, work: Work[T]) -> T:
        """Run `work` in a transaction that sees one state of the file."""
        return await self._run(lambda: self._transact("BEGIN", work))

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction that is durable on return; any error undoes all of it."""
        return await self._run(lambda: self._transact("BEGIN IMMEDIATE", work))

    async def data_version(self) -> int:
        """A number that changes when another connection has written to the file."""
        return await self._run(self._data_version)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
            self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise BusFatal(f"the bus {self._path} is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._guarded, work)

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            raise _mapped(error, self._path) from error

    def _connect(self) -> None:
        if self._connection is not None:
            return
        _claim(self._path)
        connection = sqlite3.connect(
            self._path, timeout=self._busy_timeout, isolation_level=None, cached_statements=256
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # SQLite doesn't wait by itself when several processes open a new file at once.
        deadline = time.monotonic() + self._busy_timeout
        while True:
            try:
                return prepare(connection, self._path)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise BusUnavailable(f"the bus {self._path} is not open")
        return self._connection

    def _transact(self, begin: str, work: Work[T]) -> T:
        connection = self._opened()
        connection.execute(begin)
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            # SQLite has already rolled back after some errors (disk full).
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    def _data_version(self) -> int:
        (version,) = self._opened().execute("PRAGMA data_version").fetchone()
        return int(version)


def _claim(path: str) -> None:
    """Make a new file readable for its owner alone: it holds events. SQLite gives the files beside
    it the same mode, and says what is wrong where this fails.

    A file that is there is not even opened: closing it again would drop the locks that this
    process holds on it (POSIX), and the next process to leave would take itself for the last one
    and clear the log that others still read."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))


def _mapped(error: sqlite3.Error, path: str) -> HookbusError:
    # The name of the code says enough; SQLite's text could quote a value.
    code = getattr(error, "sqlite_errorcode", None)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if code is not None and code & 0xFF in _PASSING:
        return BusUnavailable(f"the bus {path} doesn't answer: {name}")
    if code == sqlite3.SQLITE_TOOBIG:
        return OutputTooLarge("a record is larger than SQLite stores")
    return BusFatal(f"the bus {path} can't be used: {name}")
