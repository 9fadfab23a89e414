"""Appends to the embedded bus, in as few statements as can say them.

A process that settles holds up every other one: the file has one writer. SQLite runs outside of
Python's lock, and a thread that wants it back may wait for a busy one after each statement, and
after each row of an `executemany`. So a transaction is prepared before it begins, and its rows go
in together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from hookbus.router.buses.placement import Placement
from hookbus.router.buses.sqlite_log import Catalog
from hookbus.router.buses.sqlite_schema import OFFSET_BITS
from hookbus.router.errors import TopicsMissing
from hookbus.router.types import Output

_MOST_ROWS: Final = 512
"""In one statement; SQLite binds at most 32,766 values."""
_encode_headers: Final = msgspec.msgpack.Encoder().encode
_encode: Final = msgspec.json.Encoder().encode
_decode_offsets: Final = msgspec.json.Decoder(dict[int, int]).decode


class Placed(NamedTuple):
    """An output with the id of its partition, its headers encoded. `changelog` says whether the
    partition is one, of which only the last value of each key is kept."""

    partition: int
    changelog: bool
    key: bytes | None
    value: bytes | None
    headers: bytes | None


def placed(outputs: Sequence[Output], topics: Catalog, placement: Placement) -> list[Placed]:
    """What `append` writes. Raises TopicsMissing."""
    missing = {output.topic for output in outputs if output.topic not in topics}
    if missing:
        raise TopicsMissing(missing)
    return [_placed(output, topics, placement) for output in outputs]


def _placed(output: Output, topics: Catalog, placement: Placement) -> Placed:
    topic = topics[output.topic]
    number = output.partition
    if number is None:
        number = placement.place(output.key, len(topic.partitions))
    headers = _encode_headers(output.headers) if output.headers else None
    return Placed(topic.partitions[number], topic.changelog, output.key, output.value, headers)


def append(connection: sqlite3.Connection, outputs: Sequence[Placed], now: int) -> None:
    """Append in order, stamped `now` (milliseconds)."""
    records = [one for one in outputs if not one.changelog]
    if records:
        _append_records(connection, records, now)
    changes: dict[tuple[int, bytes | None], bytes | None] = {}
    for one in outputs:
        if one.changelog:
            changes.pop((one.partition, one.key), None)  # the order is that of the last changes
            changes[one.partition, one.key] = one.value
    if changes:
        _change(connection, changes, now)


def _append_records(connection: sqlite3.Connection, records: list[Placed], now: int) -> None:
    (found,) = connection.execute(
        "SELECT json_group_object(id, next) FROM partitions"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (_encode({one.partition for one in records}).decode(),),
    ).fetchone()
    ends = _decode_offsets(found)
    rows = []
    for partition, _, key, value, headers in records:
        end = ends[partition]
        ends[partition] = end + 1
        rows.append((partition << OFFSET_BITS | end, now, key, value, headers))
    _insert(connection, "INSERT INTO records (id, timestamp, key, value, headers) VALUES", rows)
    connection.execute(
        "UPDATE partitions SET next = fresh.value FROM json_each(?) AS fresh"
        " WHERE partitions.id = CAST(fresh.key AS INTEGER)",
        (_encode(ends).decode(),),
    )


def _change(
    connection: sqlite3.Connection,
    changes: Mapping[tuple[int, bytes | None], bytes | None],
    now: int,
) -> None:
    kept = [(*at, now, value) for at, value in changes.items() if value is not None]
    gone = [at for at, value in changes.items() if value is None]
    _insert(
        connection,
        "INSERT OR REPLACE INTO changelogs (partition, key, timestamp, value) VALUES",
        kept,
    )
    for some in _portions(gone):
        connection.execute(
            f"DELETE FROM changelogs WHERE (partition, key) IN (VALUES {_marks(some)})",  # noqa: S608 - marks only
            list(chain.from_iterable(some)),
        )


def _insert(connection: sqlite3.Connection, into: str, rows: Sequence[tuple[object, ...]]) -> None:
    for some in _portions(rows):
        connection.execute(f"{into} {_marks(some)}", list(chain.from_iterable(some)))


def _portions(
    rows: Sequence[tuple[object, ...]],
) -> Iterator[Sequence[tuple[object, ...]]]:
    """By powers of two, so that few statements are ever compiled."""
    start, size = 0, _MOST_ROWS
    while start < len(rows):
        while size > len(rows) - start:
            size //= 2
        yield rows[start : start + size]
        start += size


def _marks(rows: Sequence[tuple[object, ...]]) -> str:
    """The placeholders of so many rows."""
    row = f"({', '.join('?' * len(rows[0]))})"
    return ", ".join([row] * len(rows))
