"""A sink loop: topics in, deliveries to one backend out, and what happens when they fail.

Records go one after another: each partition in a lane of its own where the sink can work on
several, otherwise all in one. A message fault dead-letters the event at once. A route
fault is retried with backoff until the sink's deadline, counted from the start of the outage; then
`fail-open` dead-letters the event and goes on, and `fail-closed` stays at it and probes. Either
way the failure is in the journal before anything else happens.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import orjson

from hookbus.policies.failures import HOOK_FAILURE, Domains, named_backend
from hookbus.policies.faults import Fault
from hookbus.router.dead_letters import DeadLetterOffice
from hookbus.router.errors import OutputTooLarge
from hookbus.router.journal import Journal
from hookbus.router.outages import Lane, Outages, Terms
from hookbus.router.processes.persistence import Persistence
from hookbus.router.sinks.contract import Delivery, Sink
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.telemetry.spans import DeliverySpans
from hookbus.router.types import Partition, Reader, Record, Settlement

_BATCH: Final = 200
_WAIT: Final = 0.5


class SinkLoop:
    """One member of one sink's consumer group."""

    def __init__(
        self,
        reader: Reader,
        sink: Sink,
        terms: Terms,
        *,
        domains: Domains,
        office: DeadLetterOffice,
        journal: Journal,
        metrics: Metrics,
        progress: Progress,
        clock: Callable[[], float],
        spans: DeliverySpans | None = None,
    ) -> None:
        self._reader = reader
        self._sink = sink
        self._terms = terms
        self._domains = domains
        self._office = office
        self._journal = journal
        self._metrics = metrics
        self._progress = progress
        self._clock = clock
        self._spans = spans
        self._loop = f"sink:{terms.name}"
        self._persist = Persistence(self._loop, metrics, progress)
        self._outages = Outages(terms.name, metrics.sinks, progress, clock)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; a delivery in progress then is finished and settled first."""
        self._progress.joined()
        try:
            while not stop.is_set():
                records = await self._persist(lambda: self._reader.receive(_BATCH, _WAIT))
                self._outages.keep(self._reader.assigned())
                async with asyncio.TaskGroup() as group:
                    for lane, waiting in self._lanes(records).items():
                        group.create_task(self._drive(lane, waiting, stop))
        finally:  # whoever goes on with these partitions finds out for itself
            self._outages.end_all()

    def follow(self, terms: Terms, domains: Domains) -> None:
        """Go on under other terms, from the next attempt on."""
        self._terms = terms
        self._domains = domains

    def _lanes(self, records: list[Record]) -> Mapping[Lane, list[Record]]:
        """Records that have to be delivered one after another."""
        lanes: dict[Lane, list[Record]] = defaultdict(list)
        for record in records:
            lanes[record.home if self._sink.concurrent else None].append(record)
        return lanes

    async def _drive(self, lane: Lane, records: list[Record], stop: asyncio.Event) -> None:
        partitions = _homes(records)
        self._metrics.loops.in_flight(self._loop, len(records))
        for partition in partitions:
            self._progress.took(partition)
        try:
            waiting = await self._set_aside_own_failures(records)
            while waiting and not stop.is_set():
                homes = _homes(waiting)
                for partition in partitions - homes:
                    self._progress.done(partition)
                waiting = self._still_ours(await self._advance(lane, waiting, homes, stop))
        finally:
            if not self._still_ours(records):
                self._outages.end(lane)
            self._metrics.loops.in_flight(self._loop, -len(records))
            for partition in partitions:
                self._progress.done(partition)

    def _still_ours(self, records: list[Record]) -> list[Record]:
        assigned = self._reader.assigned()
        return [record for record in records if record.home in assigned]

    async def _set_aside_own_failures(self, records: list[Record]) -> list[Record]:
        """A backend is never the one relied on for its own failure, or one of its domain's."""
        excluded = [record for record in records if self._is_own_failure(record)]
        if not excluded:
            return records
        await self._settle([Settlement(record) for record in excluded])
        self._metrics.sinks.excluded(self._terms.name, len(excluded))
        gone = {(record.home, record.offset) for record in excluded}
        return [record for record in records if (record.home, record.offset) not in gone]

    def _is_own_failure(self, record: Record) -> bool:
        event_type = dict(record.headers).get("ce_type")
        if record.value is None or event_type not in (None, HOOK_FAILURE.encode()):
            return False
        with suppress(orjson.JSONDecodeError):
            backend = named_backend(orjson.loads(record.value))
            return backend is not None and self._domains.share(self._terms.name, backend)
        return False

    async def _advance(
        self, lane: Lane, waiting: list[Record], homes: set[Partition], stop: asyncio.Event
    ) -> list[Record]:
        """One attempt and what follows from it; returns what still waits. `homes` are the
        partitions of what waits now."""
        if self._spans is not None:
            self._spans.trying(lane, waiting[0])
        self._expect(homes, self._terms.timeout)
        delivery = await self._attempt(waiting)
        self._expect(homes, 0)
        if delivery.delivered:
            taken = waiting[: delivery.delivered]
            await self._settle([Settlement(record) for record in taken])
            self._outages.end(lane)
            if self._spans is not None:
                self._spans.delivered(lane, taken)
        waiting = waiting[delivery.delivered :]
        if delivery.fault is None:
            return waiting
        if await self._is_given_up(lane, waiting[0], delivery.fault):
            if self._spans is not None:
                self._spans.given_up(lane, waiting[0], delivery.fault)
            return waiting[1:]
        wait = self._outages.wait(lane, delivery.fault, self._terms)
        self._expect(homes, wait)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), wait)
        return waiting

    def _expect(self, partitions: set[Partition], seconds: float) -> None:
        for partition in partitions:
            self._progress.moved(partition, expected=seconds)

    async def _attempt(self, records: Sequence[Record]) -> Delivery:
        started = self._clock()
        delivery = await self._sink.deliver(records, self._terms.timeout)
        self._metrics.sinks.attempted(
            self._terms.name, delivery.delivered, delivery.fault, self._clock() - started
        )
        return delivery

    async def _is_given_up(self, lane: Lane, record: Record, fault: Fault) -> bool:
        """Apply the fault and, after the deadline, the policy to the record it stopped at."""
        if fault.kind == "message":  # the backend answers, so an outage is over
            self._outages.end(lane)
            await self._give_up(record, fault)
            return True
        outage = self._outages.begin(lane, self._terms)
        if self._clock() - outage.since < self._terms.deadline:
            return False
        if self._terms.policy == "fail-open":
            self._outages.go_on(outage)
            await self._give_up(record, fault)
            return True
        if not outage.stopped:
            await self._record_failure(record, fault)
            self._outages.stop(outage)
        return False

    async def _give_up(self, record: Record, fault: Fault) -> None:
        await self._record_failure(record, fault)
        try:
            await self._bury(record, fault, self._office)
        except OutputTooLarge:
            await self._bury(record, fault, self._office.without_bytes())
        self._metrics.sinks.dead_lettered(self._terms.name)

    async def _bury(self, record: Record, fault: Fault, office: DeadLetterOffice) -> None:
        letter = office.undelivered(record, self._terms.name, fault.reason, fault.kind)
        await self._settle([Settlement(record, (letter,))])

    async def _record_failure(self, record: Record, fault: Fault) -> None:
        terms = self._terms
        new = await self._persist(
            lambda: self._journal.record(
                record, terms.name, fault.reason, terms.policy, forward=terms.forward
            )
        )
        if new:
            self._metrics.sinks.failure_recorded(terms.name, fault.reason)

    async def _settle(self, settlements: list[Settlement]) -> None:
        started = self._clock()
        await self._persist(lambda: self._reader.settle(settlements))
        self._metrics.loops.settled(self._loop, self._clock() - started)


def _homes(records: list[Record]) -> set[Partition]:
    return {record.home for record in records}
