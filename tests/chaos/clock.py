"""A wall clock that can be stepped, for processes started with it (libfaketime, where installed).

The monotonic clock goes on as it is: that is what a step of the time of day does to a machine.
"""

from __future__ import annotations

from pathlib import Path

_LIBRARIES = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime")


class Clock:
    """The time of day of the processes that have `environment`, `offset` seconds from the true."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self._library = next(
            (f"{folder}/libfaketime.so.1" for folder in _LIBRARIES if Path(folder).is_dir()), None
        )
        self.step(0)

    @property
    def can_step(self) -> bool:
        return self._library is not None

    @property
    def environment(self) -> dict[str, str]:
        if self._library is None:
            return {}
        return {
            "LD_PRELOAD": self._library,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",  # to read the file at each call would be the load
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def step(self, offset: int) -> None:
        """All of them at once."""
        self._file.write_text(f"{offset:+d}")
