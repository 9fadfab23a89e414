"""The router loop: ingress topics in, route topics and dead letters out."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

from hookbus.router.errors import OutputTooLarge
from hookbus.router.memory import Memory
from hookbus.router.pending import PendingStore
from hookbus.router.pipeline import Outcome, Pipeline
from hookbus.router.processes.persistence import Persistence
from hookbus.router.telemetry.logs import where
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.telemetry.spans import RouterSpans
from hookbus.router.types import Partition, Reader, Record, Settlement

_log = logging.getLogger("hookbus.router")

NAME: Final = "router"

_WAIT: Final = 0.5
_SLICE: Final = 50
"""Records between two chances for other tasks, such as the answer to /healthz, to run."""


class RouterLoop:
    """One member of the router's consumer group; with `overlap` it processes one batch while the
    bus settles the one before."""

    def __init__(
        self,
        reader: Reader,
        pipeline: Pipeline,
        store: PendingStore,
        *,
        ingress_of: Mapping[str, str],
        routes: Sequence[str],
        batch: int,
        overlap: bool,
        metrics: Metrics,
        progress: Progress,
        clock: Callable[[], float],
        spans: RouterSpans | None = None,
    ) -> None:
        self._reader = reader
        self._pipeline = pipeline
        self._store = store
        self._ingress_of = ingress_of
        self._routes = tuple(routes)
        self._batch = batch
        self._overlap = overlap
        self._metrics = metrics
        self._progress = progress
        self._clock = clock
        self._spans = spans
        self._persist = Persistence(NAME, metrics, progress)
        self._change: Callable[[], None] | None = None
        self._batches: Counter[Partition] = Counter()  # in hand

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; what is in hand then is settled first. While the bus settles a
        batch, the next one is received and, with `overlap`, processed, and no more: it is settled
        after that."""
        self._progress.joined()
        settling: asyncio.Task[None] | None = None
        try:
            while not stop.is_set():
                records = await self._persist(lambda: self._reader.receive(self._batch, _WAIT))
                if settling is not None and (
                    not self._overlap or self._change is not None or settling.done()
                ):
                    await settling
                    settling = None
                if self._change is not None:
                    self._change()
                if records:
                    settling = await self._process(records, settling)
            if settling is not None:
                await settling
        finally:
            if settling is not None:
                settling.cancel()
                await asyncio.gather(settling, return_exceptions=True)

    def follow(self, pipeline: Pipeline, routes: Sequence[str], then: Callable[[], None]) -> None:
        """Go on with another pipeline from the next batch on, and call `then` at that moment."""

        def change() -> None:
            self._pipeline, self._routes, self._change = pipeline, tuple(routes), None
            then()

        self._change = change

    async def _process(
        self, records: list[Record], before: asyncio.Task[None] | None
    ) -> asyncio.Task[None]:
        """Process records, and begin to settle them once the batch before is settled."""
        began = self._spans.now() if self._spans is not None else 0
        memory = await self._remembered({record.home for record in records})
        known = [(record, memory[home]) for record in records if (home := record.home) in memory]
        records = [record for record, _ in known]
        with ExitStack() as hands:
            hands.enter_context(self._in_hand(records, list(memory)))
            outcomes = await self._outcomes(known)
            if before is not None:
                await before
            settling = self._settle(records, outcomes, began, hands.pop_all())
            return asyncio.create_task(settling, name="hookbus-settle")

    async def _remembered(self, homes: Collection[Partition]) -> dict[Partition, Memory]:
        """The memory of the partitions of records that have just been received, less those that
        are lost before it is read: the memory would be of a later assignment than the records."""
        tokens = {home: self._reader.assignment(home) for home in homes}
        memory = {
            home: await self._persist(partial(self._store.of, self._reader, home)) for home in homes
        }
        return {
            home: found
            for home, found in memory.items()
            if self._reader.assignment(home) is tokens[home]
        }

    @contextmanager
    def _in_hand(self, records: list[Record], homes: list[Partition]) -> Iterator[None]:
        """Keep the metrics and the progress true from here to the settlement."""
        self._metrics.loops.in_flight(NAME, len(records))
        for topic, count in Counter(record.topic for record in records).items():
            self._metrics.router.received(self._ingress_of[topic], count)
        self._batches.update(homes)
        for home in homes:
            self._progress.took(home)
        try:
            yield
        finally:
            self._metrics.loops.in_flight(NAME, -len(records))
            self._batches.subtract(homes)
            for home in homes:
                (self._progress.moved if self._batches[home] else self._progress.done)(home)

    async def _outcomes(self, known: Sequence[tuple[Record, Memory]]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for start in range(0, len(known), _SLICE):
            outcomes += [self._step(*one) for one in known[start : start + _SLICE]]
            await asyncio.sleep(0)
        return outcomes

    def _step(self, record: Record, memory: Memory) -> Outcome:
        """A fault of ours in one record must not hold up its partition for good."""
        try:
            return self._pipeline.step(record, memory)
        except Exception as error:  # noqa: BLE001 - whatever it is, the record is dead-lettered
            _log.error(
                "a record could not be processed: a fault in hookbus",
                extra={
                    "error": type(error).__name__,
                    "where": where(error),
                    "topic": record.topic,
                    "partition": record.partition,
                    "offset": record.offset,
                },
            )
            return self._pipeline.broken(record)

    async def _settle(
        self, records: list[Record], outcomes: list[Outcome], began: int, hands: ExitStack
    ) -> None:
        """Settle all, and count what really became of them."""
        with hands:
            started = self._clock()
            try:
                await self._persist(partial(self._reader.settle, _settlements(records, outcomes)))
            except OutputTooLarge:
                outcomes = await self._settle_each(records, outcomes)
            self._metrics.loops.settled(NAME, self._clock() - started)
        self._metrics.router.routed(outcomes, self._routes)
        if self._spans is not None:
            self._spans.settled(records, outcomes, began)

    async def _settle_each(self, records: list[Record], outcomes: list[Outcome]) -> list[Outcome]:
        """The bus takes less than the configuration says: find the records that are too large for
        it, so that they don't hold up the others."""
        settled: list[Outcome] = []
        for record, outcome in zip(records, outcomes, strict=True):
            became = outcome
            try:
                await self._persist(partial(self._reader.settle, _settlements([record], [became])))
            except OutputTooLarge as error:
                _log.error(
                    "the bus takes smaller records than bus.kafka.max_message says",
                    extra={"why": str(error)},
                )
                became = self._pipeline.too_large(record)
                await self._persist(partial(self._reader.settle, _settlements([record], [became])))
            settled.append(became)
        return settled


def _settlements(records: list[Record], outcomes: list[Outcome]) -> list[Settlement]:
    return [
        Settlement(record, outcome.outputs)
        for record, outcome in zip(records, outcomes, strict=True)
    ]
