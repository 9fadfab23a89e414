"""The compressions that the installed libraries can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiokafka import codec  # type: ignore[import-untyped]

_OPTIONAL: Final[Mapping[str, Callable[[], bool]]] = {
    "gzip": codec.has_gzip,
    "snappy": codec.has_snappy,
    "lz4": codec.has_lz4,
    "zstd": codec.has_zstd,
}


def codecs() -> frozenset[str]:
    return frozenset({"none", *(name for name, has in _OPTIONAL.items() if has())})
