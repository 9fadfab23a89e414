"""What the embedded bus may delete: functions of a connection.

A record goes when it is older than the retention and every group has passed it. A group that has
had no member for that topic for as long as the retention isn't waited for any more: its sink was
removed or renamed, or reads other topics now. Its position stays: if it comes back, it goes on at
the oldest record that is left.

How long a group is away is added up from look to look (`absences.lasted`), and a look adds a tenth
of the retention at most. So neither a step of the clock nor a time in which no process ran makes a
group seem gone.
"""

from __future__ import annotations

import sqlite3
from itertools import takewhile
from typing import Final

from msgspec import Struct

from hookbus.router.buses.sqlite_log import bounds
from hookbus.router.buses.sqlite_schema import OFFSET_BITS, OFFSET_MASK

_LOOKS: Final = 10
"""So many in a row, at least, have to find a group without a member."""


class Rule(Struct, frozen=True):
    """Milliseconds: how long records are kept, and how long a member lives without a renewal."""

    retention: int
    lease: int


def prune(connection: sqlite3.Connection, partition: int, rule: Rule, now: int, limit: int) -> int:
    """Delete at most `limit` of the oldest records of a partition that may go at `now` (ms);
    returns how many."""
    _look(connection, partition, rule, now)
    start, end = bounds(connection, partition)
    (passed,) = connection.execute(
        "SELECT coalesce(min(next), ?) FROM positions WHERE partition = ? AND grp NOT IN"
        " (SELECT grp FROM absences WHERE partition = positions.partition AND lasted >= ?)",
        (end, partition, rule.retention),
    ).fetchone()
    base = partition << OFFSET_BITS
    oldest = connection.execute(
        "SELECT id, timestamp FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (base | start, base | passed, limit),
    )
    before = now - rule.retention
    old = [row[0] for row in takewhile(lambda row: row[1] < before, oldest)]
    if not old:
        return 0
    connection.execute("DELETE FROM records WHERE id >= ? AND id <= ?", (base, old[-1]))
    connection.execute(
        "UPDATE partitions SET start = ? WHERE id = ?",
        ((old[-1] & OFFSET_MASK) + 1, partition),
    )
    return len(old)


def _look(connection: sqlite3.Connection, partition: int, rule: Rule, now: int) -> None:
    """Note which groups have no member that subscribes to the topic of this partition, and for how
    long by now. It is in the transaction that deletes, so that no group comes back in between."""
    # `expires` far ahead comes from a clock that was set back since.
    (present,) = connection.execute(
        "SELECT json_group_array(DISTINCT members.grp) FROM partitions"
        " JOIN topics ON topics.id = partitions.topic"
        " JOIN members JOIN json_each(members.topics) AS subscribed"
        " ON subscribed.value = topics.name"
        " WHERE partitions.id = ? AND members.expires BETWEEN ? AND ?",
        (partition, now, now + 4 * rule.lease),
    ).fetchone()
    connection.execute(
        "DELETE FROM absences WHERE partition = ? AND grp IN (SELECT value FROM json_each(?))",
        (partition, present),
    )
    connection.execute(
        "INSERT INTO absences (grp, partition, lasted, looked)"
        " SELECT grp, partition, 0, :now FROM positions"
        " WHERE partition = :partition AND grp NOT IN (SELECT value FROM json_each(:present))"
        " ON CONFLICT DO UPDATE SET looked = :now,"
        " lasted = lasted + max(0, min(:now - looked, :most)) WHERE lasted < :retention",
        {
            "now": now,
            "partition": partition,
            "present": present,
            "most": -(-rule.retention // _LOOKS),  # rounded up
            "retention": rule.retention,
        },
    )
