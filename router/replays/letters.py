"""Dead letters as an operator asks for them: which ones, and what may be shown of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from hookbus.router import dead_letters
from hookbus.router.configuration.units import Duration
from hookbus.router.dead_letters import DeadLetter
from hookbus.router.types import Record

_CONTENT: Final = ("value", "key", "headers")
_DURATION: Final = re.compile(r"[0-9.]+ *[a-z]+")


class Letter(Struct, frozen=True):
    """A dead letter, and where it is in its own topic; `timestamp` is when it was written, in ms
    since the epoch."""

    partition: int
    offset: int
    timestamp: int
    dead: DeadLetter

    @property
    def name(self) -> str:
        return f"{self.partition}/{self.offset}"


class Wanted(Struct, frozen=True, kw_only=True):
    """Which dead letters; a member that is None asks for nothing. Times are in ms, `until` is
    exclusive."""

    reason: str | None = None
    sink: str | None = None
    stage: str | None = None
    since: int | None = None
    until: int | None = None

    def takes(self, letter: Letter) -> bool:
        dead = letter.dead
        return (
            self.reason in (None, dead.reason)
            and self.sink in (None, dead.sink)
            and self.stage in (None, dead.stage)
            and (self.since is None or letter.timestamp >= self.since)
            and (self.until is None or letter.timestamp < self.until)
        )


def read_letter(record: Record) -> Letter | None:
    """None if the record is no dead letter."""
    dead = dead_letters.read(record)
    if dead is None:
        return None
    return Letter(record.partition, record.offset, record.timestamp, dead)


def shown(letter: Letter) -> dict[str, Any]:
    """What is told of a dead letter: never content, at no level."""
    told = msgspec.to_builtins(letter.dead)
    for member in _CONTENT:
        told.pop(member, None)
    return {"letter": letter.name, "time": rfc3339(letter.timestamp), **told}


def rfc3339(milliseconds: int) -> str:
    time = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    return time.replace("+00:00", "Z")


def moment(text: str, now: Callable[[], float]) -> int:
    """Milliseconds since the epoch, of an RFC 3339 time or of a duration before `now` (seconds).
    A time without an offset is UTC. Raises ValueError."""
    if _DURATION.fullmatch(text):
        return int((now() - Duration.parse(text)) * 1000)
    time = datetime.fromisoformat(text)
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
