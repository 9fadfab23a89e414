"""The spans of a trace: what the router and the sinks say of the records that are in one.

Made when a record is settled, from the times that were noted on the way, and only for records with
a trace context whose agent sampled it. Their parent is that context, which every copy carries
unchanged: the spans of the agent, the router and each sink are side by side in one trace, however
often a record is processed again. Attributes are a closed set, and nothing in them is a producer's
own text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from hookbus.codecs.headers import unescape
from hookbus.codecs.trace_context import TraceContext, of_headers
from hookbus.policies.faults import Fault
from hookbus.policies.levels import LEVELS, known_level
from hookbus.router.pipeline import Decision, Outcome
from hookbus.router.types import Partition, Record

Kind = Literal["consumer", "client", "producer", "internal"]
Attributes = Mapping[str, str | int]

_OTHER: Final = "other"
"""Stands for the AEP types that are not registered."""
_DECISIONS: Final[tuple[Decision, ...]] = ("dead_lettered", "routed", "untranslated", "unmatched")
"""The first that happened at a route says what became of the record."""
_RATIOS: Final = 2**64


class Span(Struct, frozen=True):
    """A piece of work on one record; times are in ns since the epoch."""

    name: str
    kind: Kind
    parent: TraceContext
    start: int
    end: int
    attributes: Attributes
    failed: bool


class Recorder(Struct, frozen=True, kw_only=True):
    """What makers of spans share. `export` takes a span and never raises or waits, `clock` tells
    ns since the epoch. Of the traces that agents sampled, a `sample` of 0 to 1 is kept: by the
    trace's id, as OpenTelemetry's ratio does it, so that whole traces are in or out."""

    export: Callable[[Span], None]
    clock: Callable[[], int]
    event_types: Collection[str]
    sample: float = 1.0

    def wants(self, trace: TraceContext | None) -> bool:
        return (
            trace is not None
            and trace.sampled
            and int(trace.trace_id[16:], 16) < round(self.sample * _RATIOS)
        )

    def known(self, event_type: str | None) -> str:
        """The type as it may be told."""
        return event_type if event_type and event_type in self.event_types else _OTHER


class RouterSpans:
    """Makes one span for each record that the router settled."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def now(self) -> int:
        return self._recorder.clock()

    def settled(self, records: Sequence[Record], outcomes: Sequence[Outcome], began: int) -> None:
        """These records were in hand since `began`, and are settled now."""
        recorder, end = self._recorder, self._recorder.clock()
        for record, outcome in zip(records, outcomes, strict=True):
            trace = outcome.trace
            if trace is None or not recorder.wants(trace):
                continue
            name = f"process {record.topic}"
            told = {**_place(record), **self._told(outcome)}
            failed = outcome.refusal is not None or "dead_lettered" in outcome.decisions
            recorder.export(Span(name, "consumer", trace, began, end, told, failed))

    def _told(self, outcome: Outcome) -> Attributes:
        told: dict[str, str | int] = {
            "hookbus.outcome": _became(outcome),
            "hookbus.routes": outcome.decisions.count("routed"),
        }
        if outcome.event_type is not None:
            told["hookbus.event.type"] = self._recorder.known(outcome.event_type)
        if outcome.levels:
            told["hookbus.capture"] = max(outcome.levels, key=LEVELS.index)
        if outcome.refusal is not None:
            told["hookbus.reason"] = outcome.refusal.code
        return told


class DeliverySpans:
    """Makes one span for each record that a sink is done with: from the first attempt at the first
    record of its batch until it is settled, however many attempts that took."""

    def __init__(self, recorder: Recorder, sink: str, kind: Kind) -> None:
        self._recorder = recorder
        self._sink = sink
        self._kind = kind
        self._tried: dict[Partition | None, tuple[Partition, int, int]] = {}

    def trying(self, lane: Partition | None, first: Record) -> None:
        """An attempt begins at the records of a lane, of which this is the first."""
        tried = self._tried.get(lane)
        if tried is None or tried[:2] != (first.home, first.offset):
            self._tried[lane] = (first.home, first.offset, self._recorder.clock())

    def delivered(self, lane: Partition | None, records: Sequence[Record]) -> None:
        """The backend took these, and they are settled."""
        self._done(lane, records, {"hookbus.outcome": "delivered"}, failed=False)

    def given_up(self, lane: Partition | None, record: Record, fault: Fault) -> None:
        """The record is dead-lettered for this sink."""
        told = {"hookbus.outcome": "dead_lettered", "hookbus.reason": fault.reason}
        self._done(lane, [record], told, failed=True)

    def _done(
        self,
        lane: Partition | None,
        records: Sequence[Record],
        became: Mapping[str, str],
        *,
        failed: bool,
    ) -> None:
        recorder, end = self._recorder, self._recorder.clock()
        *_, began = self._tried.pop(lane, (None, None, end))
        for record in records:
            trace = of_headers(record.headers)
            if trace is None or not recorder.wants(trace):
                continue
            told = {**_place(record), **self._told(record), **became}
            name = f"deliver {self._sink}"
            recorder.export(Span(name, self._kind, trace, began, end, told, failed))

    def _told(self, record: Record) -> Attributes:
        headers = dict(record.headers)
        told = {"hookbus.backend": self._sink}
        if "ce_type" in headers:
            told["hookbus.event.type"] = self._recorder.known(unescape(headers["ce_type"]))
        level = known_level(unescape(headers.get("hookbus-capture", b"")) or "")
        if level is not None:
            told["hookbus.capture"] = level
        return told


def _place(record: Record) -> Attributes:
    """Where a record is, in the words of OpenTelemetry's conventions for messaging."""
    return {
        "messaging.destination.name": record.topic,
        "messaging.destination.partition.id": str(record.partition),
        "messaging.kafka.offset": record.offset,
    }


def _became(outcome: Outcome) -> str:
    if outcome.refusal is not None:
        return "refused"
    return next((one for one in _DECISIONS if one in outcome.decisions), "unmatched")
