"""Events read from lines: decoded and correlated as the router does, within the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from hookbus.codecs.aep_stream import Violation
from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event, Protocol
from hookbus.codecs.verdict import Refusal
from hookbus.policies.correlation import Moment
from hookbus.router import build
from hookbus.router.finding import Finding


class Judged(Struct, frozen=True):
    """A line that holds a valid event; `number` counts from 1."""

    number: int
    event: Event
    finding: Finding | None
    violation: Violation | None = None
    """The rule of its stream that the event breaks."""


def judge(
    lines: Iterable[bytes], protocol: Protocol | None = None
) -> Iterator[Judged | tuple[int, Refusal]]:
    """Each line in turn, taken to be of `protocol` or of the one that it shows. An event's own time
    stands for the time at which it was taken."""
    decoder, correlator, memory = Decoder(), build.correlator(), build.memory_of_input()
    for number, line in enumerate(lines, 1):
        event = decoder.decode(line, protocol)
        if isinstance(event, Refusal):
            yield number, event
        else:
            moment = Moment(number, _milliseconds(event.time))
            finding = correlator.examine(event, moment, memory.pending)
            refuted = finding is not None and finding.refutes
            violation = memory.streams.see(event, refuted=refuted)
            yield Judged(number, event, finding, violation)


def _milliseconds(time: str) -> int:
    try:
        return int(datetime.fromisoformat(time).timestamp() * 1000)
    except (ValueError, OverflowError):  # such as a leap second, which datetime doesn't know
        return 0
