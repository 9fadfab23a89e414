"""A time of day that can be stepped, for the processes that are started with it.

The monotonic clock goes on as it is: that is what a step of the time of day does to a machine.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("wall_clock.c")


class Clock:
    """The time of day of the processes that have `environment`, `offset` seconds from the true."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self._library = folder / "wall_clock.so"
        self.can_step = shutil.which("cc") is not None
        self.step(0)
        if self.can_step:
            subprocess.run(
                ["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self._library, _SOURCE],
                check=True,
            )

    @property
    def environment(self) -> dict[str, str]:
        if not self.can_step:
            return {}
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._file)}

    def step(self, offset: int) -> None:
        """All of them at once. Written in place, because they have the file mapped."""
        self._file.touch()
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", offset))
