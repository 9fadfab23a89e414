"""Events read from lines: decoded and correlated as the router does, within the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.verdict import Refusal
from hookbus.policies.correlation import Moment, PendingRequests
from hookbus.router import build
from hookbus.router.config import Correlation
from hookbus.router.finding import Finding


class Judged(Struct, frozen=True):
    """A line that holds a valid event; `number` counts from 1."""

    number: int
    event: Event
    finding: Finding | None


def judge(lines: Iterable[bytes]) -> Iterator[Judged | tuple[int, Refusal]]:
    """Each line in turn. An event's own time stands for the time at which it was taken."""
    decoder, correlator, bounds = Decoder(), build.correlator(), Correlation()
    pending = PendingRequests(most=bounds.max_requests, age=int(bounds.max_age * 1000))
    for number, line in enumerate(lines, 1):
        event = decoder.decode(line)
        if isinstance(event, Refusal):
            yield number, event
        else:
            moment = Moment(number, _milliseconds(event.time))
            yield Judged(number, event, correlator.examine(event, moment, pending))


def _milliseconds(time: str) -> int:
    try:
        return int(datetime.fromisoformat(time).timestamp() * 1000)
    except (ValueError, OverflowError):  # such as a leap second, which datetime doesn't know
        return 0
