"""The service: starts what a configuration names, watches over it, and stops it in order.

Start: operator server, bus, journal, sinks, readers, loops. Stop: loops settle what is in hand,
readers leave their groups, then sinks, journal and bus close. The first fault that can't be
retried ends the process, so that the platform can start it again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from msgspec import Struct
from prometheus_client import CollectorRegistry, disable_created_metrics

from hookbus.router import build, build_bus, build_sinks, plan
from hookbus.router.config import Config
from hookbus.router.errors import BusFatal, BusUnavailable, HookbusError, StartupError
from hookbus.router.journal import CHANGELOGS, FORWARDED, GROUP, TOPICS, Journal, forward
from hookbus.router.logs import where
from hookbus.router.metrics import Metrics
from hookbus.router.pending import PendingStore
from hookbus.router.persistence import Persistence
from hookbus.router.progress import Health, Progress
from hookbus.router.router_loop import NAME as ROUTER
from hookbus.router.router_loop import RouterLoop
from hookbus.router.sink_loop import SinkLoop
from hookbus.router.sinks.contract import Sink
from hookbus.router.types import Bus, Partition, Reader
from hookbus.router.web import OperatorServer

_log = logging.getLogger("hookbus.service")

Loop = Callable[[asyncio.Event], Coroutine[Any, Any, None]]
"""Runs until the event is set."""

FORWARDER: Final = "forwarder"
EXIT_FINE: Final = 0
EXIT_STARTUP: Final = 3
EXIT_FATAL: Final = 4

_PATIENCE: Final = 120.0
"""Seconds that a loop may hold records without moving before /healthz says so."""
_LAG_INTERVAL: Final = 2.0


class Part(Struct, frozen=True):
    """Which loops this process runs."""

    router: bool
    sinks: tuple[str, ...]


class Service:
    """One process of the service."""

    def __init__(self, config: Config, part: Part, listen: str | None = None) -> None:
        self._config = config
        self._part = part
        self._stop = asyncio.Event()
        self._readers: dict[str, Reader] = {}
        self._shown: dict[str, frozenset[Partition]] = {}
        self._version = version("hookbus")
        self._decoder = build.decoder(config)
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double every counter, to tell the start time
        registry = CollectorRegistry()
        self._metrics = Metrics(registry, config, build.known_types(), self._version)
        self._progress = {name: Progress(time.monotonic, _PATIENCE) for name in self._loop_names()}
        self._metrics.loops.watch(self._progress)
        audit = [f"sink:{name}" for name in plan.audit_sinks(config)]
        address = listen or (config.metrics.listen if config.metrics else None)
        self._server = (
            OperatorServer(address, registry, Health(self._progress, audit)) if address else None
        )

    def _loop_names(self) -> list[str]:
        names = [ROUTER] if self._part.router else []
        return names + [f"sink:{name}" for name in self._part.sinks]

    async def run(self) -> int:
        """Until a signal or a fault; returns the exit code."""
        self._obey_signals()
        try:
            async with AsyncExitStack() as stack:
                started = await self._start(stack)
                return await self._watch(started) if started else EXIT_FINE
        except* (StartupError, BusFatal) as group:
            _log.error("can't start", extra={"why": _why(group)})
        return EXIT_STARTUP

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        if self._stop.is_set():
            _log.error("stopping at once, what is in hand is not settled")
            os._exit(EXIT_FATAL)
        _log.info("stopping")
        self._stop.set()

    async def _start(self, stack: AsyncExitStack) -> dict[str, asyncio.Task[None]]:
        """Everything that has to be open, then the loops; empty if told to stop before."""
        if self._server is not None:
            await self._server.start()
            stack.push_async_callback(self._server.stop)
        bus = build_bus.bus(self._config)
        stack.push_async_callback(bus.close)
        opening = asyncio.create_task(self._open(bus, stack))
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({opening, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not opening.done():
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            return {}
        loops = opening.result()
        _log.info("running", extra={"loops": sorted(loops)})
        return {
            name: asyncio.create_task(run(self._stop), name=name) for name, run in loops.items()
        }

    async def _open(self, bus: Bus, stack: AsyncExitStack) -> dict[str, Loop]:
        first = self._persistence(next(iter(self._progress)))
        changelogs = build_bus.changelogs(self._config) if self._part.router else {}
        await first(lambda: bus.open(build_bus.topics(self._config), changelogs))
        loops: dict[str, Loop] = {"lag": self._show_lag}
        if self._part.sinks:
            journal = await self._open_journal(bus, stack, loops)
            sinks = await self._open_sinks(bus, stack)
        await self._join(bus, stack)
        if self._part.sinks:
            loops |= {f"sink:{name}": self._sink_loop(name, sinks[name], journal) for name in sinks}
        if self._part.router:
            loops[ROUTER] = self._router_loop(bus)
        return loops

    def _persistence(self, loop: str) -> Persistence:
        return Persistence(loop, self._metrics, self._progress[loop])

    async def _open_journal(
        self, bus: Bus, stack: AsyncExitStack, loops: dict[str, Loop]
    ) -> Journal:
        """The journal, and the loop that forwards from it."""
        journal = build_bus.journal_bus(self._config)
        stack.push_async_callback(journal.close)
        try:
            await journal.open(TOPICS, CHANGELOGS)
            pending = await journal.reader(GROUP, [FORWARDED])
        except BusUnavailable as error:
            raise StartupError(f"failures.journal: {error}") from error
        stack.push_async_callback(pending.close)
        self._readers[FORWARDER] = pending
        persistence = self._persistence(f"sink:{self._part.sinks[0]}")
        topic = build_bus.failures(self._config).topic
        loops[FORWARDER] = partial(forward, pending, bus, topic, persistence)
        return Journal(journal, version=self._version, now=time.time)

    async def _open_sinks(self, bus: Bus, stack: AsyncExitStack) -> dict[str, Sink]:
        sinks = {
            name: build_sinks.sink(name, self._config.sinks[name], bus) for name in self._part.sinks
        }
        for sink in sinks.values():
            stack.push_async_callback(sink.close)
            await sink.open()
        return sinks

    async def _join(self, bus: Bus, stack: AsyncExitStack) -> None:
        """Join all consumer groups at once: a broker may take seconds for each."""
        topics = {
            f"sink:{name}": build_bus.sink_topics(self._config, name) for name in self._part.sinks
        }
        if self._part.router:
            topics[ROUTER] = build_bus.ingress_topics(self._config)
        async with asyncio.TaskGroup() as joining:
            for loop, wanted in topics.items():
                joining.create_task(self._join_one(bus, stack, loop, wanted))

    async def _join_one(
        self, bus: Bus, stack: AsyncExitStack, loop: str, topics: list[str]
    ) -> None:
        group = f"{self._config.bus.group}.{loop.replace(':', '.')}"
        reader = await self._persistence(loop)(lambda: bus.reader(group, topics))
        stack.push_async_callback(reader.close)
        self._readers[loop] = reader

    def _router_loop(self, bus: Bus) -> Loop:
        return RouterLoop(
            self._readers[ROUTER],
            build.pipeline(self._config, self._decoder),
            PendingStore(
                bus, build_bus.changelogs(self._config), partial(build.memory, self._config)
            ),
            ingress_of=build_bus.ingress_of(self._config),
            routes=tuple(self._config.routes),
            metrics=self._metrics,
            progress=self._progress[ROUTER],
            clock=time.monotonic,
        ).run

    def _sink_loop(self, name: str, sink: Sink, journal: Journal) -> Loop:
        loop = f"sink:{name}"
        return SinkLoop(
            self._readers[loop],
            sink,
            build_sinks.terms(self._config, name),
            domains=plan.domains(self._config),
            office=build.office(self._config),
            journal=journal,
            metrics=self._metrics,
            progress=self._progress[loop],
            clock=time.monotonic,
        ).run

    async def _watch(self, tasks: Mapping[str, asyncio.Task[None]]) -> int:
        """Wait for the stop or the first fault, then let every loop settle what it has."""
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({*tasks.values(), stopping}, return_when=asyncio.FIRST_COMPLETED)
        self._stop.set()
        await stopping
        _, late = await asyncio.wait(tasks.values(), timeout=self._config.shutdown_grace)
        for task in late:
            task.cancel()
        results = await asyncio.gather(*tasks.values(), return_exceptions=True)
        faults = {
            name: result
            for name, result in zip(tasks, results, strict=True)
            if isinstance(result, BaseException)
        }
        for name, fault in faults.items():
            _log.error(
                "loop ended by a fault",
                extra={"loop": name, "why": _why(fault), "where": where(fault)},
            )
        _log.info("stopped")
        return EXIT_FATAL if faults else EXIT_FINE

    async def _show_lag(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            for loop, reader in self._readers.items():
                progress = self._progress.get(loop)
                try:
                    lag = await reader.lag()
                except BusUnavailable:
                    if progress is not None:
                        progress.measured(False)
                    continue
                if progress is not None:
                    progress.measured(True)
                if loop == FORWARDER:
                    self._metrics.loops.journal_pending(sum(lag.values()))
                    continue
                self._metrics.loops.lag(loop, lag, self._shown.get(loop, frozenset()))
                self._shown[loop] = frozenset(lag)
            try:
                await asyncio.wait_for(stop.wait(), _LAG_INTERVAL)
            except TimeoutError:
                continue


def _why(fault: BaseException) -> str:
    """What may be said of a fault: the text of our own errors, and of others the type."""
    if isinstance(fault, BaseExceptionGroup):
        return ", ".join(_why(inner) for inner in fault.exceptions)
    if isinstance(fault, asyncio.CancelledError):
        return "not finished within the grace period; what was in hand comes again"
    return str(fault) if isinstance(fault, HookbusError) else type(fault).__name__
