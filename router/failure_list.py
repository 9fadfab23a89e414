"""The recorded failures as an operator asks for them: each once, and where it is recorded."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from hookbus.router.journal import FORWARDED, KEPT
from hookbus.router.types import Bus, Record

Recorded = Literal["journal", "journal_only", "topic"]
"""In the journal, and meant for the failures topic or not; or seen in the topic itself."""

_JOURNAL: Final[tuple[tuple[str, Recorded], ...]] = ((FORWARDED, "journal"), (KEPT, "journal_only"))


class _Failure(Struct, frozen=True, rename="camel"):
    backend_id: str
    reason: str | None = None
    policy: str | None = None


class _Event(Struct, frozen=True, rename="camel"):
    id: str
    source: str
    time: str
    failure: _Failure
    parent_event_id: str | None = None


_decoder: Final = msgspec.json.Decoder(_Event)


class Found(Struct, frozen=True):
    """A recorded failure. `time` is the event's own, RFC 3339; `timestamp` (ms) is when it was
    written where it was found first. `sink` is a stranger's name if a harness reported it."""

    time: str
    timestamp: int
    sink: str
    reason: str | None
    policy: str | None
    source: str
    parent: str | None
    recorded: tuple[Recorded, ...]

    def shown(self) -> dict[str, Any]:
        return {
            "time": self.time,
            "sink": self.sink,
            "reason": self.reason,
            "policy": self.policy,
            "source": self.source,
            "parentEventId": self.parent,
            "recorded": self.recorded,
        }


async def failures(journal: Bus | None, bus: Bus | None, topic: str) -> AsyncIterator[Found]:
    """Those of the journal, then those that only the failures topic has; either may be left out.
    Memory is one digest a failure."""
    in_topic: set[bytes] = set()
    if bus is not None:
        async for record in bus.scan(topic, follow=False):
            event = _read(record)
            if event is not None:
                in_topic.add(_identity(event))
    told: set[bytes] = set()
    if journal is not None:
        for name, recorded in _JOURNAL:
            async for record in journal.scan(name, follow=False):
                event = _read(record)
                if event is not None and (identity := _identity(event)) not in told:
                    told.add(identity)
                    also: tuple[Recorded, ...] = ("topic",) if identity in in_topic else ()
                    yield _found(record, event, (recorded, *also))
    if bus is not None:
        async for record in bus.scan(topic, follow=False):
            event = _read(record)
            if event is not None and (identity := _identity(event)) not in told:
                told.add(identity)
                yield _found(record, event, ("topic",))


def _found(record: Record, event: _Event, recorded: tuple[Recorded, ...]) -> Found:
    failure = event.failure
    return Found(
        event.time,
        record.timestamp,
        failure.backend_id,
        failure.reason,
        failure.policy,
        event.source,
        event.parent_event_id,
        recorded,
    )


def _read(record: Record) -> _Event | None:
    try:
        return _decoder.decode(record.value or b"")
    except msgspec.MsgspecError:
        return None


def _identity(event: _Event) -> bytes:
    return hashlib.blake2b(f"{event.source}\x00{event.id}".encode(), digest_size=12).digest()
