"""What is sent again for a dead letter, and to whom: pure.

Refused input goes back to its ingress topic. What one sink gave up goes to that sink alone, by way
of its own replay topic, at the level that the route of its topic has now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from hookbus.router.replays.attempts import replayed
from hookbus.router.replays.letters import Letter
from hookbus.router.replays.regate import NotAgain, Regate
from hookbus.router.types import Output, Record

Why = Literal["gone", "attempts", "no_ingress", "no_sink", "not_subscribed", "too_large"] | NotAgain
"""Why a dead letter can't be replayed: its record is gone; it was replayed too often; its topic is
no ingress (any more); there is no such sink, or it doesn't subscribe to that topic; the copy
doesn't fit; or it has no copy now."""


class Recipient(Struct, frozen=True):
    """A sink: what it subscribes to, and the topic of its replays."""

    topics: frozenset[str]
    replays: str


class ReplayDesk(Struct, frozen=True, kw_only=True):
    """`ingress` are the ingress topics, `failures_topic` the one that hookbus alone writes, at
    `metadata`. A letter whose record was replayed `max_attempts` times already is refused, so that
    what fails again and again doesn't go in circles."""

    regate: Regate
    ingress: frozenset[str]
    recipients: Mapping[str, Recipient]
    failures_topic: str | None
    max_attempts: int
    largest: int
    """The most bytes that the bus takes in a record."""

    def refuses(self, letter: Letter) -> Why | None:
        """Why it can't be replayed whatever its record holds."""
        dead = letter.dead
        if dead.attempts >= self.max_attempts:
            return "attempts"
        if dead.stage == "router":
            return None if dead.topic in self.ingress else "no_ingress"
        recipient = self.recipients.get(dead.sink or "")
        if recipient is None:
            return "no_sink"
        return None if dead.topic in recipient.topics else "not_subscribed"

    def target(self, letter: Letter) -> str:
        """The topic that it is sent to, of a letter that isn't refused."""
        if letter.dead.stage == "router":
            return letter.dead.topic
        return self.recipients[letter.dead.sink or ""].replays

    def outputs(self, letter: Letter, record: Record) -> list[Output] | Why:
        """What is sent. `record` is the one that the letter is about."""
        dead = letter.dead
        copies = self._copies(record) if dead.stage == "sink" else [_verbatim(record)]
        if not isinstance(copies, list):
            return copies
        origin = dead.place if dead.stage == "sink" else None
        target, attempts = self.target(letter), dead.attempts + 1
        outputs = [
            Output(target, copy.key, copy.value, replayed(copy.headers, attempts, origin))
            for copy in copies
        ]
        fit = all(output.size <= self.largest for output in outputs)
        return outputs if fit else "too_large"

    def _copies(self, record: Record) -> list[Output] | NotAgain:
        if record.topic in self.ingress or record.topic == self.failures_topic:
            return [_verbatim(record)]  # no route limits what its subscribers see
        return self.regate.copies(record)


def _verbatim(record: Record) -> Output:
    return Output(record.topic, record.key, record.value, record.headers)
