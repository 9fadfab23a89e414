"""Dead letters: what can't be processed, kept with a reason and with where it is (DESIGN §5.4).

At `metadata` a dead letter holds coordinates and never content: the record itself stays where the
coordinates say. At `full` it holds the bytes too, as far as they fit.
"""

from __future__ import annotations

import base64
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from hookbus.codecs.verdict import Code, Refusal
from hookbus.policies.faults import Reason
from hookbus.router.config import DeadLetters
from hookbus.router.types import Output, Record

_ROOM: Final = 512
"""Bytes for the key, the envelope of a record and the member's name."""


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
    value: str | None = None
    """The bytes in base64, at `full` only."""


class DeadLetterOffice(Struct, frozen=True):
    """Writes dead letters for one topic; `largest` bounds a record, in bytes."""

    settings: DeadLetters
    largest: int

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
        letter = DeadLetter(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            timestamp=record.timestamp,
            size=None if record.value is None else len(record.value),
            **why,
        )
        body = msgspec.json.encode(letter)
        if self.settings.capture == "full" and record.value:
            text = base64.b64encode(record.value).decode("ascii")
            if len(body) + len(text) + _ROOM <= self.largest:
                body = msgspec.json.encode(msgspec.structs.replace(letter, value=text))
        # A key of its own: one that the producer chose would be content, and a null value or a
        # reused key could delete another dead letter in a compacted topic.
        key = f"{record.topic}/{record.partition}/{record.offset}".encode()
        return Output(self.settings.topic, key, body)
