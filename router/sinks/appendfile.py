"""A file of lines that is whole after every crash. Blocking: it runs in a thread.

What a crash can leave is a last line without its newline. The record that it belongs to was never
settled and comes again, so the torn line is cut away. The cut is also the answer to a full disk:
the file ends where it last was durable.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hookbus.router.errors import StartupError

logger = logging.getLogger("hookbus.sink")

_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MISCONFIGURED: Final = frozenset(
    {errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.EPERM, errno.ENXIO}
)
_BLOCK: Final = 65536


class Attempt:
    """How far an append has come, shared by the thread that writes and the task that may give up.

    Whoever comes first wins: lines are either reported as durable or taken back, never both.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given_up = False
        self._durable = 0

    def commit(self, lines: int) -> bool:
        """Count lines as durable; False if nobody waits for them any more."""
        with self._lock:
            if not self._given_up:
                self._durable += lines
            return not self._given_up

    def give_up(self) -> int:
        """End the attempt from outside; the number of lines that are durable and stay."""
        with self._lock:
            self._given_up = True
            return self._durable


class AppendFile:
    """Appends lines to `path`; past `rotate_bytes` the file becomes `path.1`, that becomes `path.2`
    and so on, and `rotate_keep` of them are kept."""

    def __init__(self, path: Path, rotate_bytes: int | None, rotate_keep: int) -> None:
        self._path = path
        self._rotate_bytes = rotate_bytes
        self._rotate_keep = rotate_keep
        self._lock: int | None = None
        self._file: int | None = None
        self._uncut: tuple[int, int] | None = None  # inode and size of a cut that failed

    def open(self) -> None:
        """Claim and repair the file. Raises StartupError if the path can't be right, OSError if the
        disk doesn't work now."""
        try:
            self._ready()
        except OSError as error:
            if error.errno not in _MISCONFIGURED:
                raise
            what = os.strerror(error.errno or 0)
            raise StartupError(f"file sink {self._path}: {what.lower()}") from error

    def append(self, lines: Sequence[bytes], attempt: Attempt) -> None:
        """Make the lines durable in order; `attempt` says how many are, also after an OSError."""
        start = 0
        while start < len(lines):
            file = self._ready()
            before = os.fstat(file)
            stop = self._room(lines, start, before.st_size)
            if stop == start:
                self._rotate()
                continue
            self._write(file, b"".join(lines[start:stop]), before)
            if not attempt.commit(stop - start):
                self._cut(file, before)
                return
            start = stop

    def close(self) -> None:
        """Let go of the file and of the claim to it."""
        self._drop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _room(self, lines: Sequence[bytes], start: int, size: int) -> int:
        """The end of the run of lines that this file still takes. A line is never divided, so an
        empty file takes one of any length."""
        if self._rotate_bytes is None:
            return len(lines)
        stop = start
        while stop < len(lines) and (size == 0 or size + len(lines[stop]) <= self._rotate_bytes):
            size += len(lines[stop])
            stop += 1
        return stop

    def _write(self, file: int, data: bytes, before: os.stat_result) -> None:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            if data:
                os.fsync(file)
        except OSError:
            # After a failed fsync the kernel may call the lost pages clean, and the next fsync
            # would succeed: they must be written anew.
            self._cut(file, before)
            raise

    def _cut(self, file: int, before: os.stat_result) -> None:
        """Take back whatever was written since, now or, if the disk refuses, on reopening."""
        try:
            os.ftruncate(file, before.st_size)
            os.fsync(file)
        except OSError:
            self._uncut = (before.st_ino, before.st_size)
            self._drop()

    def _ready(self) -> int:
        """The open file; opened again if somebody moved it away, as log rotators do."""
        self._claim()
        if self._file is not None and not _same(self._file, self._path):
            self._drop()
        if self._file is None:
            self._file = self._open()
        return self._file

    def _open(self) -> int:
        file, new = _open_or_create(self._path)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise StartupError(f"file sink {self._path}: not a regular file")
            if new:
                _sync_folder(self._path.parent)
            self._finish_cut(file)
            _repair(file, self._path)
        except BaseException:
            os.close(file)
            raise
        return file

    def _finish_cut(self, file: int) -> None:
        now = os.fstat(file)
        if self._uncut is not None and now.st_ino == self._uncut[0]:
            os.ftruncate(file, min(now.st_size, self._uncut[1]))
        self._uncut = None

    def _claim(self) -> None:
        """One writer a path. The claim is on a file beside it, which rotation doesn't move."""
        if self._lock is not None:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(self._path.with_name(self._path.name + ".lock"), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise StartupError(f"file sink {self._path}: in use by another writer") from error
        except BaseException:
            os.close(lock)
            raise
        self._lock = lock

    def _rotate(self) -> None:
        """Shift the numbered files up to the first gap, which a crash in here may have left."""
        self._drop()
        names = [self._path, *map(self._numbered, range(1, self._rotate_keep + 1))]
        gap = next((n for n, name in enumerate(names) if not name.exists()), self._rotate_keep)
        for number in range(gap, 0, -1):
            names[number - 1].replace(names[number])
        _sync_folder(self._path.parent)

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what counts was fsynced
                os.close(file)


def _open_or_create(path: Path) -> tuple[int, bool]:
    try:
        return os.open(path, _FLAGS), False
    except FileNotFoundError:
        return os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600), True


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except OSError:  # moved away, or a handle that a network file system calls stale
        return False


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _repair(file: int, path: Path) -> None:
    """Cut a torn last line away. What a crash tears starts like a JSON object, or is a hole that
    the file system left; anything else was not written by a file sink, and is not ours to cut."""
    size = os.fstat(file).st_size
    end = _end_of_last_line(file, size)
    if end == size:
        return
    if os.pread(file, 1, end) not in (b"{", b"\0"):
        raise StartupError(f"file sink {path}: ends in something that is not a line of JSON")
    os.ftruncate(file, end)
    os.fsync(file)
    logger.warning("file sink %s: cut %d bytes of a torn last line", path, size - end)


def _end_of_last_line(file: int, size: int) -> int:
    while size > 0:
        start = max(0, size - _BLOCK)
        found = os.pread(file, size - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        size = start
    return 0
