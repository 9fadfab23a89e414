"""The tables of the embedded bus, and the check that a file is one.

A record's id is `partition id << 40 | offset`, so that a partition is one range of the primary key
and no second index has to be written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hookbus.router.errors import BusFatal

OFFSET_BITS: Final = 40
OFFSET_MASK: Final = (1 << OFFSET_BITS) - 1
_APPLICATION_ID: Final = 0x686B6273  # "hkbs"
_VERSION: Final = 1

_TABLES: Final = """
CREATE TABLE topics (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    partitions INTEGER NOT NULL,
    changelog INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL REFERENCES topics(id),
    number INTEGER NOT NULL,
    start INTEGER NOT NULL DEFAULT 0,
    next INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic, number)
);
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    timestamp INTEGER NOT NULL,
    key BLOB,
    value BLOB,
    headers BLOB
);
CREATE TABLE changelogs (
    partition INTEGER NOT NULL REFERENCES partitions(id),
    key BLOB NOT NULL,
    timestamp INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (partition, key)
);
CREATE TABLE groups (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE members (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    grp INTEGER NOT NULL REFERENCES groups(id),
    topics TEXT NOT NULL,
    expires INTEGER NOT NULL
);
CREATE INDEX members_of_group ON members (grp);
CREATE TABLE positions (
    grp INTEGER NOT NULL REFERENCES groups(id),
    partition INTEGER NOT NULL REFERENCES partitions(id),
    next INTEGER NOT NULL,
    owner INTEGER,
    epoch INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (grp, partition)
) WITHOUT ROWID;
CREATE INDEX positions_of_partition ON positions (partition);
"""
_ADDED: Final = """
CREATE TABLE IF NOT EXISTS absences (
    grp INTEGER NOT NULL REFERENCES groups(id),
    partition INTEGER NOT NULL REFERENCES partitions(id),
    lasted INTEGER NOT NULL,
    looked INTEGER NOT NULL,
    PRIMARY KEY (partition, grp)
) WITHOUT ROWID
"""
"""A file of this version may lack it, and who doesn't know it can do without."""


def prepare(connection: sqlite3.Connection, path: str) -> None:
    """Set the connection up and make the tables that the file lacks. Raises BusFatal if the file
    belongs to something else or to another version of hookbus."""
    with _transaction(connection, "BEGIN"):
        version = _version(connection, path)
    if version == 0:
        connection.execute("PRAGMA page_size=8192")  # before WAL: a record usually fits in a page
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA wal_autocheckpoint=2000")
    connection.execute("PRAGMA journal_size_limit=67108864")
    connection.execute("PRAGMA cache_size=-32768")
    # Asked again under the lock: two processes may open a new file at once.
    with _transaction(connection, "BEGIN IMMEDIATE"):
        if _version(connection, path) == 0:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={_VERSION}")
        connection.execute(_ADDED)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: str) -> int:
    """The schema version of the file, 0 if it is empty. Needs a transaction, so that the answers
    are of one moment."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == 0 and version == 0 and tables == 0:
        return 0
    if application != _APPLICATION_ID:
        raise BusFatal(f"{path} is not a hookbus bus")
    if version != _VERSION:
        raise BusFatal(f"{path} has schema version {version}; this hookbus reads {_VERSION}")
    return _VERSION
