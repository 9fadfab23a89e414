"""The service: one process that runs its part of a configuration.

Start: bus, journal, sinks, readers, loops. Stop: loops settle what is in hand and leave their
groups, then sinks, journal and bus close. The first fault that can't be retried ends the process,
so that whoever started it can start it again. In between, `prepare` and `apply` bring it to another
configuration.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import version
from typing import Final

from msgspec import Struct
from prometheus_client import CollectorRegistry, disable_created_metrics

from hookbus.router import build, build_bus
from hookbus.router.configuration import plan, referred
from hookbus.router.configuration.config import Config
from hookbus.router.errors import BusFatal, StartupError
from hookbus.router.pending import PendingStore
from hookbus.router.pipeline import Pipeline
from hookbus.router.processes.loops import Loops, unless, why
from hookbus.router.processes.membership import join, probe
from hookbus.router.processes.part import ROUTER, Part, loop_of
from hookbus.router.processes.persistence import Persistence
from hookbus.router.processes.sink_run import SinkRun
from hookbus.router.processes.sink_runs import SinkRuns
from hookbus.router.router_loop import RouterLoop
from hookbus.router.telemetry.build_traces import Traces
from hookbus.router.telemetry.lag import Lag
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Health, Progress
from hookbus.router.types import Reader

_log = logging.getLogger("hookbus.service")

EXIT_FINE: Final = 0
EXIT_STARTUP: Final = 3
EXIT_FATAL: Final = 4


class _Prepared(Struct, frozen=True):
    """A configuration that can be run, and what of it doesn't run yet."""

    config: Config
    part: Part
    contents: Mapping[str, str]
    pipeline: Pipeline | None
    sinks: Mapping[str, SinkRun]


class Service:
    """`worker` is the number of this process among those that run the same loops, if any do."""

    def __init__(self, config: Config, part: Part, worker: int | None = None) -> None:
        self._config = config
        self._part = part
        self._worker = worker
        self._decoder = build.decoder(config)
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double every counter, to tell the start time
        self.registry = CollectorRegistry()
        self._metrics = Metrics(
            self.registry, part.view(config), build.known_types(), version("hookbus")
        )
        self._progress = {loop: Progress(time.monotonic) for loop in part.loops}
        self._metrics.loops.watch(self._progress)
        self.health = Health(self._progress, self._audit_loops())
        self._loops = Loops(config.shutdown_grace)
        self._lag = Lag(self._readers, self._progress, self._metrics)
        self._reader: Reader | None = None
        self._router: RouterLoop | None = None
        self._prepared: _Prepared | None = None
        self._stack = AsyncExitStack()
        self._ends = 0.0
        self._running = asyncio.Event()
        self._ending = asyncio.Event()
        self._preparing = asyncio.Lock()

    async def run(self, stop: asyncio.Event) -> int:
        """Until `stop` is set or a fault; returns the exit code."""
        try:
            async with self._stack:
                try:
                    started = await unless(stop, self._start())
                    return await self._watch(stop) if started else EXIT_FINE
                finally:
                    await self._loops.end()
        except* (StartupError, BusFatal) as group:
            _log.error("can't start", extra={"why": why(group)})
        return EXIT_STARTUP

    async def prepare(self, config: Config, part: Part) -> None:
        """Do what may fail of a change to another configuration; waits until the service runs.
        Raises StartupError, BusFatal or BusUnavailable; then nothing has changed. A service that
        ends gives it up."""
        async with self._preparing:
            ready = await unless(self._ending, self._get_ready(config, part))
            if not ready or self._ending.is_set():
                raise StartupError("the service is stopping")

    async def _get_ready(self, config: Config, part: Part) -> None:
        await self._running.wait()
        await self._loops.stopped()
        known = _topics(self._config, self._part)
        new = [topic for topic in _topics(config, part) if topic not in known]
        if new:
            await self._bus.open(new)
        for sink in part.sinks:
            if sink not in self._part.sinks:
                await probe(self._bus, config, loop_of(sink), build_bus.sink_topics(config, sink))
        self._prepared = await self._prepare(config, part)

    def apply(self) -> None:
        """Go over to what was prepared: the router between two batches, a sink that stays between
        two attempts. A sink that goes settles what it has in hand and leaves its group; one that
        comes joins after that. A service that ends stays as it is."""
        if self._ending.is_set():
            return
        if self._prepared is None:
            raise RuntimeError("nothing is prepared")
        prepared, self._prepared = self._prepared, None
        self._config, self._part = prepared.config, prepared.part
        self.health.require(self._audit_loops())
        if self._router is not None and prepared.pipeline is not None:
            routes = tuple(self._config.routes)
            then = partial(self._metrics.router.show, routes)
            self._router.follow(prepared.pipeline, routes, then)
        self._sinks.apply(self._config, self._part.sinks, prepared.contents, prepared.sinks)

    async def discard(self) -> None:
        """Don't go over to what was prepared, if anything was."""
        prepared, self._prepared = self._prepared, None
        for sink in prepared.sinks.values() if prepared is not None else ():
            await sink.close()

    async def _start(self) -> None:
        """Open everything, join all groups at once, because a broker may take seconds for each,
        and start the loops."""
        self._traces = Traces(
            self._config, version("hookbus"), build.known_types(), self._metrics.spans.became
        )
        self._stack.push_async_callback(self._close_traces)
        self._bus = build_bus.bus(self._config, self._worker)
        self._stack.push_async_callback(self._bus.close)
        self._sinks = SinkRuns(
            self._bus,
            self._loops,
            self._lag,
            self._metrics,
            self._progress,
            self._traces,
            self._stack,
        )
        changelogs = build_bus.changelogs(self._config) if self._part.router else {}
        first = self._part.loops[0]
        persist = Persistence(first, self._metrics, self._progress[first])
        topics = _topics(self._config, self._part)
        await persist(lambda: self._bus.open(topics, changelogs))
        prepared = self._prepared = await self._prepare(self._config, self._part)
        async with asyncio.TaskGroup() as joining:
            for sink in prepared.sinks.values():
                self._stack.push_async_callback(sink.close)
                joining.create_task(sink.join())
            if prepared.pipeline is not None:
                joining.create_task(self._join_router(prepared.pipeline))
        self.apply()
        if self._router is not None and self._reader is not None:
            self._loops.start(ROUTER, self._router.run, self._reader.close)
        self._loops.start("lag", self._lag.show)
        _log.info("running", extra={"loops": sorted(self._part.loops)})
        self._running.set()

    async def _prepare(self, config: Config, part: Part) -> _Prepared:
        contents = await asyncio.to_thread(referred.contents, config)
        pipeline = build.pipeline(config, self._decoder) if part.router else None
        sinks = await self._sinks.prepare(config, part.sinks, contents)
        return _Prepared(config, part, contents, pipeline, sinks)

    async def _join_router(self, pipeline: Pipeline) -> None:
        config, progress = self._config, self._progress[ROUTER]
        topics = build_bus.ingress_topics(config)
        self._reader = await join(self._bus, config, ROUTER, topics, self._metrics, progress)
        self._stack.push_async_callback(self._reader.close)
        self._router = RouterLoop(
            self._reader,
            pipeline,
            PendingStore(self._bus, build_bus.changelogs(config), partial(build.memory, config)),
            ingress_of=build_bus.ingress_of(config),
            routes=tuple(config.routes),
            batch=config.bus.max_poll_records,
            overlap=build_bus.overlap(config),
            metrics=self._metrics,
            progress=progress,
            clock=time.monotonic,
            spans=self._traces.router(),
        )

    async def _watch(self, stop: asyncio.Event) -> int:
        """Wait for the stop or the first fault, then let every loop settle what it has."""
        waiting = [asyncio.create_task(each.wait()) for each in (stop, self._loops.broken)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        self._ends = time.monotonic() + self._config.shutdown_grace
        await self._give_up_change()
        fine = await self._loops.end()
        _log.info("stopped")
        return EXIT_FINE if fine else EXIT_FATAL

    async def _give_up_change(self) -> None:
        """No loop may start any more, nor anything be opened: nobody would end it."""
        self._ending.set()
        async with self._preparing:
            await self.discard()

    async def _close_traces(self) -> None:
        """In what is left of the grace period."""
        await self._traces.close(max(0.0, self._ends - time.monotonic()))

    def _readers(self) -> Mapping[str, Reader]:
        """Of the loops that are members now."""
        router = {} if self._reader is None else {ROUTER: self._reader}
        return router | self._sinks.readers()

    def _audit_loops(self) -> list[str]:
        return [loop_of(name) for name in plan.audit_sinks(self._config)]


def _topics(config: Config, part: Part) -> list[str]:
    """Those that this process has to do with."""
    return build_bus.topics(config, router=part.router, sinks=part.sinks)
