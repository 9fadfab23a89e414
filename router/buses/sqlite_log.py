"""Topics, appends, reads and retention of the embedded bus: functions of a connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

import msgspec

from hookbus.router.buses.placement import Placement
from hookbus.router.buses.sqlite_schema import OFFSET_BITS
from hookbus.router.errors import TopicsMissing
from hookbus.router.types import Headers, Output, Partition, Record

Catalog = dict[str, tuple[int, ...]]
"""Topic name to the ids of its partitions, by number. Topics are never removed or resized."""

_OFFSET_MASK: Final = (1 << OFFSET_BITS) - 1
READ_BYTES: Final = 16 * 1024 * 1024  # a batch of big values stays a small one
_headers_encoder: Final = msgspec.msgpack.Encoder()
_headers_decoder: Final = msgspec.msgpack.Decoder(tuple[tuple[str, bytes], ...])


def create_topics(connection: sqlite3.Connection, topics: Sequence[str], partitions: int) -> None:
    """Make those of `topics` that don't exist."""
    for name in topics:
        row = connection.execute(
            "INSERT INTO topics (name, partitions) VALUES (?, ?)"
            " ON CONFLICT (name) DO NOTHING RETURNING id",
            (name, partitions),
        ).fetchone()
        if row is not None:
            connection.executemany(
                "INSERT INTO partitions (topic, number) VALUES (?, ?)",
                [(row[0], number) for number in range(partitions)],
            )


def catalog(connection: sqlite3.Connection) -> Catalog:
    """All topics with the ids of their partitions."""
    found: dict[str, list[int]] = {}
    for name, partition in connection.execute(
        "SELECT topics.name, partitions.id FROM topics JOIN partitions"
        " ON partitions.topic = topics.id ORDER BY topics.name, partitions.number"
    ):
        found.setdefault(name, []).append(partition)
    return {name: tuple(ids) for name, ids in found.items()}


def append(
    connection: sqlite3.Connection,
    outputs: Sequence[Output],
    topics: Catalog,
    placement: Placement,
    now: int,
) -> None:
    """Append in order, stamped `now` (milliseconds). Raises TopicsMissing before writing."""
    missing = {output.topic for output in outputs if output.topic not in topics}
    if missing:
        raise TopicsMissing(missing)
    ends: dict[int, int] = {}
    rows = []
    for output in outputs:
        ids = topics[output.topic]
        partition = ids[placement.place(output.key, len(ids))]
        end = ends.get(partition)
        if end is None:
            (end,) = connection.execute(
                "SELECT next FROM partitions WHERE id = ?", (partition,)
            ).fetchone()
        ends[partition] = end + 1
        headers = _headers_encoder.encode(output.headers) if output.headers else None
        rows.append((partition << OFFSET_BITS | end, now, output.key, output.value, headers))
    connection.executemany(
        "INSERT INTO records (id, timestamp, key, value, headers) VALUES (?, ?, ?, ?, ?)", rows
    )
    connection.executemany(
        "UPDATE partitions SET next = ? WHERE id = ?",
        [(end, partition) for partition, end in ends.items()],
    )


def read(
    connection: sqlite3.Connection, home: Partition, partition: int, offset: int, limit: int
) -> list[Record]:
    """At most `limit` records from `offset` on."""
    base = partition << OFFSET_BITS
    records: list[Record] = []
    size = 0
    for key, timestamp, record_key, value, headers in connection.execute(
        "SELECT id, timestamp, key, value, headers FROM records"
        " WHERE id >= ? AND id <= ? ORDER BY id LIMIT ?",
        (base | offset, base | _OFFSET_MASK, limit),
    ):
        records.append(
            Record(
                topic=home.topic,
                partition=home.number,
                offset=key & _OFFSET_MASK,
                timestamp=timestamp,
                key=record_key,
                value=value,
                headers=_decoded(headers),
            )
        )
        size += len(value or b"")
        if size >= READ_BYTES:
            break
    return records


def bounds(connection: sqlite3.Connection, partition: int) -> tuple[int, int]:
    """The oldest offset that is kept, and the next one to be written."""
    start, end = connection.execute(
        "SELECT start, next FROM partitions WHERE id = ?", (partition,)
    ).fetchone()
    return start, end


def prune(connection: sqlite3.Connection, partition: int, before: int, limit: int) -> int:
    """Delete at most `limit` of the oldest records of a partition that are older than `before`
    (milliseconds) and that every known group has passed; returns how many."""
    start, end = bounds(connection, partition)
    (passed,) = connection.execute(
        "SELECT coalesce(min(next), ?) FROM positions WHERE partition = ?", (end, partition)
    ).fetchone()
    base = partition << OFFSET_BITS
    oldest = connection.execute(
        "SELECT id, timestamp FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (base | start, base | passed, limit),
    )
    old = [row[0] for row in takewhile(lambda row: row[1] < before, oldest)]
    if not old:
        return 0
    connection.execute("DELETE FROM records WHERE id >= ? AND id <= ?", (base, old[-1]))
    connection.execute(
        "UPDATE partitions SET start = ? WHERE id = ?",
        ((old[-1] & _OFFSET_MASK) + 1, partition),
    )
    return len(old)


def _decoded(headers: bytes | None) -> Headers:
    return _headers_decoder.decode(headers) if headers else ()
