"""Which partition a key belongs to: the same one on every bus, and the same one as in Java."""

from __future__ import annotations

from itertools import count

from aiokafka.partitioner import murmur2  # type: ignore[import-untyped]

_CACHED_KEYS = 65_536  # the hash is pure Python, and keys are sources: few, and often repeated


class Placement:
    """Places keys by Kafka's murmur2; records without a key go round in turn."""

    def __init__(self) -> None:
        self._hashes: dict[bytes, int] = {}
        self._turn = count()

    def place(self, key: bytes | None, partitions: int) -> int:
        """The partition number, below `partitions`."""
        if key is None:
            return next(self._turn) % partitions
        hashed = self._hashes.get(key)
        if hashed is None:
            if len(self._hashes) >= _CACHED_KEYS:
                self._hashes.clear()
            hashed = self._hashes[key] = murmur2(key) & 0x7FFFFFFF
        return hashed % partitions
