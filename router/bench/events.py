"""The events that are measured on: shipped, realistic, of six types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

from msgspec import Struct

from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.strict import encode

SIX_TYPES: Final = (
    "tool.before",
    "tool.after",
    "turn.start",
    "model.response.after",
    "user.elicitation.request",
    "user.elicitation.result",
)

_LETTERS: Final = b"abcdefgh"
_MARKS: Final = (b"evt-", b"ses-", b"refund", b" the ", b"file has", b"twice")
"""What the sessions differ in: ids, and at least one word of each text."""
_SESSION: Final = Path(__file__).parent.with_name("demo_session.jsonl")
_SOURCE: Final = b"https://agents.harborline.example/workstations/ws-114"
_SOURCES: Final = 200


def six_type_mix() -> list[bytes]:
    """The events of these types in the recorded session, as compact JSON."""
    decoder = Decoder()
    decoded = [decoder.decode(line) for line in _SESSION.read_bytes().splitlines()]
    events = [event for event in decoded if isinstance(event, Event) and event.type in SIX_TYPES]
    return [encode(event.tree) for event in events]


def padded_mix(size: int = 10_000) -> list[bytes]:
    """The same events with a message of `size` bytes where they have messages."""
    padded = []
    for raw in six_type_mix():
        event = json.loads(raw)
        for item in event.get("items", ()):
            for part in item.get("parts", ()):
                if "text" in part:
                    part["text"] = (part["text"] + " ") * (size // (len(part["text"]) + 1) + 1)
        padded.append(encode(event))
    return padded


def many_sessions(events: list[bytes]) -> list[bytes]:
    """These events of one session, and those of others with other ids and texts."""
    made: list[bytes] = []
    for name in map(bytes, product(_LETTERS, _LETTERS)):
        for event in events:
            for mark in _MARKS:
                event = event.replace(mark, mark + name)
            made.append(event)
    return made


class Sample(Struct, frozen=True):
    """An event that occurs once, with what it is known by."""

    id: bytes
    source: bytes
    value: bytes


def sessions(first: int, count: int) -> Iterator[Sample]:
    """The six types again and again: each session with ids of its own, on one of 200 sources."""
    mix = [(json.loads(raw)["id"].encode(), raw) for raw in six_type_mix()]
    for number in range(first, first + count):
        source = b"%s%03d" % (_SOURCE[:-3], number % _SOURCES)
        for identity, raw in mix:
            yield Sample(
                _renamed(identity, number),
                source,
                _renamed(raw, number).replace(_SOURCE, source),
            )


def _renamed(text: bytes, session: int) -> bytes:
    return text.replace(b"evt-", b"evt-%d-" % session).replace(b"ses-", b"ses-%d-" % session)
