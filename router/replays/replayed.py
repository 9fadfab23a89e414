"""Remembers which dead letters have been replayed, in a changelog beside the dead letters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from hookbus.router.errors import TopicsMissing
from hookbus.router.replays.letters import Letter
from hookbus.router.types import Bus, Output, Record

_BATCH: Final = 500


class _Mark(Struct, frozen=True):
    timestamp: int
    """The letter's, which tells it from one that took its place in a topic made anew."""


_decoder: Final = msgspec.json.Decoder(_Mark)


class Replayed:
    """The replayed ones of the dead letters in `topic`; a key is a letter's coordinates."""

    def __init__(self, bus: Bus, changelog: str, topic: str) -> None:
        self._bus = bus
        self._changelog = changelog
        self._topic = topic
        self._marks: dict[bytes, tuple[int, int]] = {}
        self._unseen: set[bytes] = set()

    async def load(self) -> None:
        """What earlier runs have noted; nothing if there was none."""
        try:
            async for record in self._bus.scan(self._changelog, follow=False):
                self._apply(record)
        except TopicsMissing:
            self._marks.clear()
        self._unseen = set(self._marks)

    def _apply(self, record: Record) -> None:
        key = record.key or b""
        if record.value is None:
            self._marks.pop(key, None)
        elif key.startswith(f"{self._topic}/".encode()):
            try:
                mark = _decoder.decode(record.value)
            except msgspec.MsgspecError:
                return
            self._marks[key] = (record.partition, mark.timestamp)

    def saw(self, record: Record) -> None:
        """This record is in the dead-letter topic."""
        self._unseen.discard(self._key(record.partition, record.offset))

    def has(self, letter: Letter) -> bool:
        mark = self._marks.get(self._key(letter.partition, letter.offset))
        return mark is not None and mark[1] == letter.timestamp

    async def note(self, letters: Iterable[Letter]) -> None:
        """Durable on return."""
        outputs = []
        for letter in letters:
            key = self._key(letter.partition, letter.offset)
            value = msgspec.json.encode(_Mark(letter.timestamp))
            outputs.append(Output(self._changelog, key, value, partition=letter.partition))
            self._marks[key] = (letter.partition, letter.timestamp)
        await self._bus.publish(outputs)

    async def forget_unseen(self) -> None:
        """Letters that a whole scan didn't see are gone, and so is what was noted of them."""
        gone = list(self._unseen)
        for start in range(0, len(gone), _BATCH):
            await self._bus.publish(
                [
                    Output(self._changelog, key, None, partition=self._marks[key][0])
                    for key in gone[start : start + _BATCH]
                ]
            )

    def _key(self, partition: int, offset: int) -> bytes:
        return f"{self._topic}/{partition}/{offset}".encode()
