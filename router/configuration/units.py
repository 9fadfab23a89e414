"""Values that carry their unit in a configuration: durations, sizes, and references to secrets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: Final = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip


class Duration(float):
    """Seconds; written with a unit: `750ms`, `30s`, `5m`, `24h`, `7d`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: Any) -> Duration:
        return cls(_quantity(text, _SECONDS, "a duration such as 750ms, 30s, 5m, 24h or 7d"))


class Size(int):
    """Bytes; written with a unit: `512B`, `64KiB`, `4MiB`, `1GiB`, `10MB`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: Any) -> Size:
        return cls(_quantity(text, _BYTES, "a size such as 512B, 64KiB, 4MiB or 1GiB"))


def _quantity(text: Any, units: dict[str, Any], expected: str) -> float:
    found = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if found is None or found.group(2) not in units:
        raise ValueError(f"expected {expected}")
    return float(found.group(1)) * units[found.group(2)]  # type: ignore[no-any-return]


class Secret(Struct, frozen=True, forbid_unknown_fields=True):
    """A reference to a secret: an environment variable or a file, never the secret itself."""

    env: str | None = None
    """The environment variable that holds it."""
    file: str | None = None
    """The file that holds it; a newline at its end doesn't count."""

    def problem(self) -> str | None:
        """What is wrong with the reference itself, read or not."""
        if (self.env is None) == (self.file is None):
            return "name exactly one of env and file"
        return None

    def read(self) -> str:
        """The secret as it is now, without a trailing newline. Raises OSError or KeyError."""
        if self.env is not None:
            return os.environ[self.env]
        if self.file is None:
            raise KeyError("a reference without env and file")
        return Path(self.file).read_text(encoding="utf-8").rstrip("\r\n")
