"""Consumer groups of the embedded bus: members, leases and positions, as functions of a connection.

A member lives as long as it renews `members.expires`. A partition belongs to `positions.owner`
under `positions.epoch`; whoever settles checks both inside its own transaction, so a member that
was suspended past its lease can't write, whatever the clocks say.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec import Struct

from hookbus.router.buses.sqlite_log import Catalog


class Lease(Struct, frozen=True):
    """A partition that a member owns: under which epoch, and where the group is in it."""

    epoch: int
    next: int


class Standing(Struct, frozen=True):
    """What a renewal found: the member's leases by partition id, those that it owes to others,
    and the group's generation, which changes whenever somebody comes or goes."""

    leases: Mapping[int, Lease]
    surplus: frozenset[int]
    generation: int


def join(
    connection: sqlite3.Connection, group: str, topics: Sequence[str], known: Catalog, expires: int
) -> tuple[int, int]:
    """Register a member; returns the ids of the group and of the member. A group that is new to a
    partition starts at the oldest record."""
    connection.execute("INSERT INTO groups (name) VALUES (?) ON CONFLICT DO NOTHING", (group,))
    (group_id,) = connection.execute("SELECT id FROM groups WHERE name = ?", (group,)).fetchone()
    places = [(group_id, partition) for topic in topics for partition in known[topic].partitions]
    connection.executemany(
        "INSERT INTO positions (grp, partition, next)"
        " SELECT ?, id, start FROM partitions WHERE id = ? ON CONFLICT DO NOTHING",
        places,
    )
    connection.executemany("DELETE FROM absences WHERE grp = ? AND partition = ?", places)
    (member,) = connection.execute(
        "INSERT INTO members (grp, topics, expires) VALUES (?, ?, ?) RETURNING id",
        (group_id, msgspec.json.encode(sorted(topics)).decode(), expires),
    ).fetchone()
    _bump(connection, group_id)
    return group_id, member


def renew(
    connection: sqlite3.Connection,
    group: int,
    member: int,
    topics: Sequence[str],
    known: Catalog,
    given_up: Collection[int],
    now: int,
    lease: int,
) -> Standing:
    """Extend the membership, bury the dead, hand over `given_up` and claim what is free up to the
    member's share. Times are in milliseconds."""
    # `expires` far ahead comes from a clock that was set back since: not a reason to wait.
    buried = connection.execute(
        "DELETE FROM members WHERE grp = ? AND id <> ? AND (expires < ? OR expires > ?)",
        (group, member, now, now + 4 * lease),
    ).rowcount
    connection.execute(
        "INSERT INTO members (id, grp, topics, expires) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET expires = excluded.expires",
        (member, group, msgspec.json.encode(sorted(topics)).decode(), now + lease),
    )
    connection.executemany(
        "UPDATE positions SET owner = NULL WHERE grp = ? AND partition = ? AND owner = ?",
        [(group, partition, member) for partition in given_up],
    )
    freed = connection.execute(
        "UPDATE positions SET owner = NULL WHERE grp = ? AND owner IS NOT NULL"
        " AND owner NOT IN (SELECT id FROM members WHERE grp = ?)",
        (group, group),
    ).rowcount
    if buried or freed or given_up:
        _bump(connection, group)
    surplus = _balance(connection, group, member, topics, known)
    return Standing(
        leases=_leases(connection, group, member),
        surplus=surplus,
        generation=generation(connection, group),
    )


def generation(connection: sqlite3.Connection, group: int) -> int:
    (found,) = connection.execute("SELECT generation FROM groups WHERE id = ?", (group,)).fetchone()
    return int(found)


def owned(
    connection: sqlite3.Connection, group: int, member: int, epochs: Mapping[int, int]
) -> frozenset[int]:
    """Those of the partitions that the member still holds under these epochs."""
    (found,) = connection.execute(
        "SELECT json_group_array(partition) FROM positions, json_each(?) AS held"
        " WHERE grp = ? AND partition = CAST(held.key AS INTEGER) AND owner = ?"
        " AND epoch = held.value",
        (msgspec.json.encode(epochs).decode(), group, member),
    ).fetchone()
    return frozenset(msgspec.json.decode(found, type=list[int]))


def advance(connection: sqlite3.Connection, group: int, positions: Mapping[int, int]) -> None:
    """Set the group's next offset in these partitions."""
    connection.execute(
        "UPDATE positions SET next = fresh.value FROM json_each(?) AS fresh"
        " WHERE grp = ? AND partition = CAST(fresh.key AS INTEGER)",
        (msgspec.json.encode(positions).decode(), group),
    )


def position(connection: sqlite3.Connection, group: int, partition: int) -> int:
    (found,) = connection.execute(
        "SELECT next FROM positions WHERE grp = ? AND partition = ?", (group, partition)
    ).fetchone()
    return int(found)


def leave(connection: sqlite3.Connection, group: int, member: int) -> None:
    """Free everything that the member holds, at once."""
    connection.execute(
        "UPDATE positions SET owner = NULL WHERE grp = ? AND owner = ?", (group, member)
    )
    connection.execute("DELETE FROM members WHERE id = ?", (member,))
    _bump(connection, group)


def shares(
    members: Sequence[tuple[int, Collection[str]]], partitions: Mapping[str, int]
) -> dict[tuple[int, str], int]:
    """How many partitions of each topic each member should hold; together they hold all of them,
    and older members the odd one. Pure, so that all members compute the same."""
    load = {member: 0 for member, _ in members}
    share: dict[tuple[int, str], int] = {}
    for topic in sorted(partitions):
        subscribed = [member for member, topics in members if topic in topics]
        for _ in range(partitions[topic] if subscribed else 0):
            member = min(subscribed, key=lambda one: (load[one], one))
            load[member] += 1
            share[member, topic] = share.get((member, topic), 0) + 1
    return share


def _balance(
    connection: sqlite3.Connection, group: int, member: int, topics: Sequence[str], known: Catalog
) -> frozenset[int]:
    """Claim free partitions up to the member's share; returns what it holds above its share."""
    members = [
        (row[0], frozenset(msgspec.json.decode(row[1], type=list[str])))
        for row in connection.execute(
            "SELECT id, topics FROM members WHERE grp = ? ORDER BY id", (group,)
        )
    ]
    wanted = {topic for _, subscribed in members for topic in subscribed if topic in known}
    share = shares(members, {topic: len(known[topic].partitions) for topic in wanted})
    owners = dict(
        connection.execute("SELECT partition, owner FROM positions WHERE grp = ?", (group,))
    )
    surplus: set[int] = set()
    for topic in topics:
        room = share.get((member, topic), 0)
        held = [one for one in known[topic].partitions if owners.get(one) == member]
        free = [one for one in known[topic].partitions if owners.get(one) is None]
        surplus.update(held[room:])
        _claim(connection, group, member, free[: max(0, room - len(held))])
    return frozenset(surplus)


def _claim(
    connection: sqlite3.Connection, group: int, member: int, partitions: Sequence[int]
) -> None:
    connection.executemany(
        "UPDATE positions SET owner = ?, epoch = epoch + 1 WHERE grp = ? AND partition = ?",
        [(member, group, partition) for partition in partitions],
    )


def _leases(connection: sqlite3.Connection, group: int, member: int) -> dict[int, Lease]:
    return {
        partition: Lease(epoch=epoch, next=offset)
        for partition, epoch, offset in connection.execute(
            "SELECT partition, epoch, next FROM positions WHERE grp = ? AND owner = ?",
            (group, member),
        )
    }


def _bump(connection: sqlite3.Connection, group: int) -> None:
    connection.execute("UPDATE groups SET generation = generation + 1 WHERE id = ?", (group,))
