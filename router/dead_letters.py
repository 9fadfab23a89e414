"""Dead letters: what can't be processed, kept with a reason and with where it is.

At `metadata` a dead letter holds coordinates and never content: the record itself stays where the
coordinates say. At `full` it holds the bytes too, as far as they fit.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from hookbus.codecs.trace_context import of_headers
from hookbus.codecs.verdict import Code, Refusal
from hookbus.policies.faults import Reason
from hookbus.router.configuration.config import DeadLetters
from hookbus.router.replays.attempts import Place, attempts_of, origin_of, place_of
from hookbus.router.types import Headers, Output, Record

_ROOM: Final = 512
"""Bytes for the key, the envelope of a record and the members' names."""


class DeadLetter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The value of a dead-letter record. `timestamp` is that of the record, in ms since the
    epoch; `size` is the length of its value in bytes, absent for a tombstone."""

    stage: Literal["router", "sink"]
    reason: Code | Reason
    path: str | None = None
    rule: str | None = None
    route: str | None = None
    sink: str | None = None
    fault: Literal["message_fault", "route_fault"] | None = None
    topic: str
    partition: int
    offset: int
    timestamp: int
    size: int | None = None
    attempts: int = 0
    """How often the record had been replayed."""
    value: str | None = None
    """The bytes in base64, at `full` only."""
    key: str | None = None
    """As the value."""
    headers: tuple[tuple[str, str], ...] = ()
    """As the value."""

    @property
    def place(self) -> Place:
        return Place(self.topic, self.partition, self.offset, self.timestamp)

    def record(self) -> Record | None:
        """The record itself, as far as the letter has it; None without its bytes."""
        if self.value is None:
            return None
        try:
            return Record(
                *self.place,
                None if self.key is None else base64.b64decode(self.key),
                base64.b64decode(self.value),
                tuple((name, base64.b64decode(value)) for name, value in self.headers),
            )
        except binascii.Error:
            return None


_decoder: Final = msgspec.json.Decoder(DeadLetter)


def read(record: Record) -> DeadLetter | None:
    """The dead letter that a record holds; None if it holds something else."""
    try:
        return _decoder.decode(record.value or b"")
    except msgspec.MsgspecError:
        return None


class DeadLetterOffice(Struct, frozen=True):
    """Writes dead letters for one topic; `largest` bounds a record, in bytes. What fails again in
    one of `replay_topics` is where it came from, and not where its copy is."""

    settings: DeadLetters
    largest: int
    replay_topics: frozenset[str] = frozenset()

    def without_bytes(self) -> DeadLetterOffice:
        """For what the bus refuses although it is within the limit: a letter with the bytes would
        be refused as well."""
        return msgspec.structs.replace(self, largest=0)

    def refused(self, record: Record, refusal: Refusal) -> Output:
        """For input that is no valid event."""
        return self._output(
            record,
            stage="router",
            reason=refusal.code,
            path=refusal.path,
            rule=refusal.rule,
        )

    def copy_too_large(self, record: Record, route: str | None) -> Output:
        """For a copy that doesn't fit into one record of the bus, of one route if that is known."""
        return self._output(record, stage="router", reason="too_large", route=route)

    def broken(self, record: Record) -> Output:
        """For a record that met a fault of hookbus itself."""
        return self._output(record, stage="router", reason="internal_error")

    def undelivered(
        self, record: Record, sink: str, reason: Reason, kind: Literal["message", "route"]
    ) -> Output:
        """For a record that one sink gave up."""
        return self._output(
            record,
            stage="sink",
            sink=sink,
            reason=reason,
            fault="message_fault" if kind == "message" else "route_fault",
        )

    def _output(self, record: Record, **why: Any) -> Output:
        place = self._place(record)
        letter = DeadLetter(
            **place._asdict(),
            size=None if record.value is None else len(record.value),
            attempts=attempts_of(record.headers),
            **why,
        )
        body = msgspec.json.encode(letter)
        if self.settings.capture == "full" and record.value:
            whole = msgspec.json.encode(_with_bytes(letter, record, record.value))
            if len(whole) + _ROOM <= self.largest:
                body = whole
        # A key of its own: one that the producer chose would be content, and a null value or a
        # reused key could delete another dead letter in a compacted topic.
        names = [str(letter.attempts), *(name for name in (letter.sink, letter.route) if name)]
        key = "/".join([*map(str, place[:3]), *names])
        trace = of_headers(record.headers)
        headers = () if trace is None else trace.headers("metadata")
        return Output(self.settings.topic, key.encode(), body, headers)

    def _place(self, record: Record) -> Place:
        origin = origin_of(record.headers) if record.topic in self.replay_topics else None
        return origin or place_of(record)


def _with_bytes(letter: DeadLetter, record: Record, value: bytes) -> DeadLetter:
    return msgspec.structs.replace(
        letter,
        value=_text(value),
        key=None if record.key is None else _text(record.key),
        headers=_texts(record.headers),
    )


def _texts(headers: Headers) -> tuple[tuple[str, str], ...]:
    return tuple((name, _text(value)) for name, value in headers)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
