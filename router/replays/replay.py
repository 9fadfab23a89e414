"""Replays dead letters: reads their records again and sends them where they failed.

What has been sent is noted after the bus has acknowledged it. A run that is killed in between sends
one portion again, with the same identities; a second run sends nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from hookbus.router.errors import OutputTooLarge, TopicsMissing
from hookbus.router.replays import pace
from hookbus.router.replays.letters import Letter, Wanted, read_letter, shown
from hookbus.router.replays.replay_desk import ReplayDesk, Why
from hookbus.router.replays.replayed import Replayed
from hookbus.router.types import Bus, Output, Partition, Record

_BATCH: Final = 500  # letters whose records are read again together
_BYTES: Final = 4 * 1024 * 1024
_SHOWN_EVERY: Final = 1.0  # seconds between two lines of progress

_Waiting = tuple[Letter, list[Output]]
"""A letter and what is sent for it; nothing if another letter's outputs are this one's too."""

Tell = Callable[[Any], None]
"""Takes one JSON value for the operator to see."""


class Tally:
    """What became of the dead letters that were asked for."""

    def __init__(self) -> None:
        self.letters = 0
        self.already = 0
        self.unreadable = 0
        self.sent: Counter[tuple[str, str, str]] = Counter()
        """By stage, reason and target."""
        self.refused: Counter[Why] = Counter()

    @property
    def replayed(self) -> int:
        return self.sent.total()

    def summary(self) -> dict[str, Any]:
        return {
            "letters": self.letters,
            "replayed": self.replayed,
            "already": self.already,
            "refused": dict(self.refused),
            "unreadable": self.unreadable,
            "by": [
                {"stage": stage, "reason": reason, "target": target, "count": count}
                for (stage, reason, target), count in sorted(self.sent.items())
            ],
        }


class Replay:
    """One run. `rate` is in records a second; a dry run sends and notes nothing. `clock` is
    monotonic, in seconds."""

    def __init__(
        self,
        bus: Bus,
        desk: ReplayDesk,
        done: Replayed,
        *,
        dry_run: bool,
        rate: float | None,
        clock: Callable[[], float],
        tell: Tell,
    ) -> None:
        self._bus = bus
        self._desk = desk
        self._done = done
        self._dry_run = dry_run
        self._rate = rate
        self._clock = clock
        self._tell = tell
        self._started = clock()
        self._tally = Tally()
        self._same: set[int] = set()
        """What was sent, or is about to be: one record may have left several letters."""
        self._outbox: list[_Waiting] = []
        self._bytes = 0
        self._shown = self._started - _SHOWN_EVERY

    async def run(self, topic: str, wanted: Wanted) -> Tally:
        """Replay what `wanted` takes of the dead letters in `topic`, as it is now. Raises
        BusUnavailable or BusFatal; what is noted by then is done."""
        batch: list[Letter] = []
        async for record in self._bus.scan(topic, follow=False):
            self._done.saw(record)
            letter = read_letter(record)
            if letter is None:
                self._tally.unreadable += 1
            elif wanted.takes(letter) and self._is_open(letter):
                batch.append(letter)
            if len(batch) == _BATCH:
                await self._replay(batch)
                batch = []
        await self._replay(batch)
        if not self._dry_run:
            await self._done.forget_unseen()
        return self._tally

    def _is_open(self, letter: Letter) -> bool:
        """Count a letter; whether it can be tried."""
        self._tally.letters += 1
        if self._done.has(letter):
            self._tally.already += 1
            return False
        why = self._desk.refuses(letter)
        if why is not None:
            self._refuse(letter, why)
        return why is None

    def _refuse(self, letter: Letter, why: Why) -> None:
        self._tally.refused[why] += 1
        self._tell({"refused": why, **shown(letter)})

    async def _replay(self, letters: list[Letter]) -> None:
        """Send what these letters are about, in order within each partition that it came from."""
        waiting: dict[Partition, dict[int, list[Letter]]] = {}
        for letter in letters:
            home = Partition(letter.dead.topic, letter.dead.partition)
            waiting.setdefault(home, {}).setdefault(letter.dead.offset, []).append(letter)
        for home, at in waiting.items():
            try:
                async for record in self._bus.fetch(*home, list(at)):
                    for letter in at.pop(record.offset, ()):
                        await self._take(letter, record)
            except TopicsMissing:
                pass  # then every record of it is gone
            for letter in [one for left in at.values() for one in left]:
                await self._take(letter, None)
        await self._flush()

    async def _take(self, letter: Letter, found: Record | None) -> None:
        """`found` is what is at the letter's place now."""
        dead = letter.dead
        if found is not None and found.timestamp != dead.timestamp:
            found = None  # another record, in a topic made anew
        record = found or dead.record()
        outputs = self._desk.outputs(letter, record) if record is not None else "gone"
        if not isinstance(outputs, list):
            self._refuse(letter, outputs)
            return
        identity = hash((dead.stage, dead.sink, dead.place, dead.attempts))
        again = identity in self._same
        self._same.add(identity)
        self._outbox.append((letter, [] if again else outputs))
        self._bytes += sum(output.size for output in outputs)
        if self._bytes >= _BYTES or len(self._outbox) >= pace.portion(self._rate):
            await self._flush()

    async def _flush(self) -> None:
        """Send what is in hand, wait until the bus has it, and only then note it."""
        portion, self._outbox, self._bytes = self._outbox, [], 0
        if not self._dry_run:
            await self._keep_pace()
            portion = await self._send(portion)
            await self._done.note(letter for letter, _ in portion)
        for letter, outputs in portion:
            if outputs:
                dead = letter.dead
                self._tally.sent[dead.stage, dead.reason, outputs[0].topic] += 1
            else:
                self._tally.already += 1
        self._show_progress()

    async def _keep_pace(self) -> None:
        elapsed = self._clock() - self._started
        await asyncio.sleep(pace.wait(self._tally.replayed, self._rate, elapsed))

    async def _send(self, portion: list[_Waiting]) -> list[_Waiting]:
        """What the bus has taken."""
        try:
            await self._bus.publish([output for _, outputs in portion for output in outputs])
        except OutputTooLarge:
            if len(portion) > 1:
                return [taken for one in portion for taken in await self._send([one])]
            self._refuse(portion[0][0], "too_large")
            return []
        return portion

    def _show_progress(self) -> None:
        now = self._clock()
        if now - self._shown >= _SHOWN_EVERY:
            self._shown = now
            self._tell({"letters": self._tally.letters, "replayed": self._tally.replayed})
