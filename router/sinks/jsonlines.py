"""JSON Lines: one record, one line."""

from __future__ import annotations

from hookbus.router.types import Record

_BREAKS = bytes.maketrans(b"\r\n", b"  ")


def line(record: Record) -> bytes:
    """The record's value and a newline; nothing for a tombstone.

    The value is JSON, where a raw line break can only stand between tokens: a space there means the
    same.
    """
    if record.value is None:
        return b""
    return record.value.translate(_BREAKS) + b"\n"
