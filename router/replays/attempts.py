"""What a replayed record says of itself, and where replays for one sink go.

`hookbus-attempts` counts how often a record has been replayed, so that none goes in circles;
`hookbus-origin` says where a record of a replay topic was read, so that it can be read there again.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

from hookbus.router.types import Headers, Record

ATTEMPTS: Final = "hookbus-attempts"
ORIGIN: Final = "hookbus-origin"

_LONGEST_TOPIC: Final = 249
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]")
_COUNT = re.compile(rb"[0-9]{1,6}")
_PLACE = re.compile(rb"([A-Za-z0-9._-]{1,249})/([0-9]{1,10})/([0-9]{1,19})/(-?[0-9]{1,19})")


class Place(NamedTuple):
    """Where a record is; the timestamp (ms) tells it from one that took its place since."""

    topic: str
    partition: int
    offset: int
    timestamp: int


def place_of(record: Record) -> Place:
    return Place(record.topic, record.partition, record.offset, record.timestamp)


def attempts_of(headers: Headers) -> int:
    """How often the record has been replayed. Whoever forges it keeps only his own record from
    being replayed."""
    value = dict(headers).get(ATTEMPTS, b"")
    return int(value) if _COUNT.fullmatch(value) else 0


def origin_of(headers: Headers) -> Place | None:
    """Where a record of a replay topic was read; None if it doesn't say."""
    found = _PLACE.fullmatch(dict(headers).get(ORIGIN, b""))
    if found is None:
        return None
    topic, *numbers = found.groups()
    return Place(topic.decode(), *map(int, numbers))


def replayed(headers: Headers, attempts: int, origin: Place | None = None) -> Headers:
    """The headers of a record that is replayed for the `attempts`th time."""
    kept = tuple((name, value) for name, value in headers if name not in (ATTEMPTS, ORIGIN))
    kept += ((ATTEMPTS, b"%d" % attempts),)
    return kept if origin is None else (*kept, (ORIGIN, "/".join(map(str, origin)).encode()))


def replay_topic(group: str, sink: str) -> str:
    """The topic of what is replayed for this sink alone. A sink's name need not be a legal topic:
    then what isn't legal is replaced, and a digest keeps names apart that would become one."""
    wanted = f"{group}.replay.{sink}"
    legal = _FOREIGN.sub("_", wanted)
    if legal == wanted and len(legal) <= _LONGEST_TOPIC:
        return legal
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:12]
    return f"{legal[: _LONGEST_TOPIC - 13]}.{digest}"
