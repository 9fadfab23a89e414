"""Topics and reads of the embedded bus: functions of a connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from hookbus.router.buses.sqlite_schema import OFFSET_BITS, OFFSET_MASK
from hookbus.router.types import Headers, Partition, Record


class Topic(Struct, frozen=True):
    """The ids of a topic's partitions, by number. Topics are never removed or resized."""

    partitions: tuple[int, ...]
    changelog: bool = False
    """Only the last value of each key is kept, in a table of its own."""


Catalog = dict[str, Topic]
"""Topics by name."""

READ_BYTES: Final = 16 * 1024 * 1024  # a batch of big values stays a small one
_FORGOTTEN: Final = 10
_headers_decoder: Final = msgspec.msgpack.Decoder(tuple[tuple[str, bytes], ...])


def create_topics(
    connection: sqlite3.Connection,
    topics: Sequence[str],
    partitions: int,
    changelogs: Mapping[str, str],
) -> None:
    """Make those of `topics` and `changelogs` that don't exist; a changelog gets as many partitions
    as the topic that it belongs to."""
    for name in (*topics, *changelogs):
        row = connection.execute(
            "INSERT INTO topics (name, partitions, changelog) VALUES"
            " (?, coalesce((SELECT partitions FROM topics WHERE name = ?), ?), ?)"
            " ON CONFLICT (name) DO NOTHING RETURNING id, partitions",
            (name, changelogs.get(name), partitions, name in changelogs),
        ).fetchone()
        if row is not None:
            connection.executemany(
                "INSERT INTO partitions (topic, number) VALUES (?, ?)",
                [(row[0], number) for number in range(row[1])],
            )


def catalog(connection: sqlite3.Connection) -> Catalog:
    """All topics with the ids of their partitions."""
    found: dict[tuple[str, bool], list[int]] = {}
    for name, changelog, partition in connection.execute(
        "SELECT topics.name, topics.changelog, partitions.id FROM topics JOIN partitions"
        " ON partitions.topic = topics.id ORDER BY topics.name, partitions.number"
    ):
        found.setdefault((name, bool(changelog)), []).append(partition)
    return {name: Topic(tuple(ids), changelog) for (name, changelog), ids in found.items()}


def read_changelog(connection: sqlite3.Connection, home: Partition, partition: int) -> list[Record]:
    """What a changelog partition holds, in the order of the last changes."""
    rows = connection.execute(
        "SELECT rowid, timestamp, key, value FROM changelogs WHERE partition = ? ORDER BY rowid",
        (partition,),
    )
    return [
        Record(home.topic, home.number, offset, timestamp, key, value)
        for offset, timestamp, key, value in rows
    ]


def read(
    connection: sqlite3.Connection, home: Partition, partition: int, offset: int, limit: int
) -> list[Record]:
    """At most `limit` records from `offset` on."""
    base = partition << OFFSET_BITS
    records: list[Record] = []
    size = 0
    for row in connection.execute(
        "SELECT id, timestamp, key, value, headers FROM records"
        " WHERE id >= ? AND id <= ? ORDER BY id LIMIT ?",
        (base | offset, base | OFFSET_MASK, limit),
    ):
        record = _record(home, row)
        records.append(record)
        size += len(record.value or b"")
        if size >= READ_BYTES:
            break
    return records


def read_at(
    connection: sqlite3.Connection, home: Partition, partition: int, offset: int
) -> Record | None:
    """The record at one offset, if there is one."""
    row = connection.execute(
        "SELECT id, timestamp, key, value, headers FROM records WHERE id = ?",
        (partition << OFFSET_BITS | offset,),
    ).fetchone()
    return None if row is None else _record(home, row)


def note_once(
    connection: sqlite3.Connection, partition: int, key: bytes, now: int, before: int
) -> bool:
    """Add a key to a changelog partition unless it is there; returns whether it is new. Keys older
    than `before` (ms) are forgotten, a few at each call, so that there is never much to delete."""
    connection.execute(
        "DELETE FROM changelogs WHERE timestamp < ? AND rowid IN"
        " (SELECT rowid FROM changelogs ORDER BY rowid LIMIT ?)",
        (before, _FORGOTTEN),
    )
    added = connection.execute(
        "INSERT OR IGNORE INTO changelogs (partition, key, timestamp, value) VALUES (?, ?, ?, ?)",
        (partition, key, now, b""),
    )
    return added.rowcount == 1


def bounds(connection: sqlite3.Connection, partition: int) -> tuple[int, int]:
    """The oldest offset that is kept, and the next one to be written."""
    start, end = connection.execute(
        "SELECT start, next FROM partitions WHERE id = ?", (partition,)
    ).fetchone()
    return start, end


def _record(
    home: Partition, row: tuple[int, int, bytes | None, bytes | None, bytes | None]
) -> Record:
    key, timestamp, record_key, value, headers = row
    return Record(
        topic=home.topic,
        partition=home.number,
        offset=key & OFFSET_MASK,
        timestamp=timestamp,
        key=record_key,
        value=value,
        headers=_decoded(headers),
    )


def _decoded(headers: bytes | None) -> Headers:
    return _headers_decoder.decode(headers) if headers else ()
