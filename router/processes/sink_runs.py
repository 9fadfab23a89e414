"""The sinks of a process, and the journal that they share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import version

from hookbus.router import build_bus
from hookbus.router.build_sinks import Backends
from hookbus.router.configuration import referred
from hookbus.router.configuration.changes import goes_on
from hookbus.router.configuration.config import Config
from hookbus.router.errors import BusUnavailable, StartupError
from hookbus.router.journal import CHANGELOGS, FORWARDED, GROUP, TOPICS, Journal, forward
from hookbus.router.processes.loops import Loops
from hookbus.router.processes.part import loop_of
from hookbus.router.processes.persistence import Persistence
from hookbus.router.processes.sink_run import SinkRun
from hookbus.router.telemetry.build_traces import Traces
from hookbus.router.telemetry.lag import Lag
from hookbus.router.telemetry.loop_metrics import FORWARDER
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.types import Bus, Reader


class SinkRuns:
    """Those that run, by name. `progress` has the loops that the process answers for; what is
    opened for all sinks closes with `stack`."""

    def __init__(
        self,
        bus: Bus,
        loops: Loops,
        lag: Lag,
        metrics: Metrics,
        progress: dict[str, Progress],
        traces: Traces,
        stack: AsyncExitStack,
    ) -> None:
        self._bus = bus
        self._backends = Backends(bus)
        self._loops = loops
        self._lag = lag
        self._metrics = metrics
        self._progress = progress
        self._traces = traces
        self._stack = stack
        self._runs: dict[str, SinkRun] = {}
        self._contents: Mapping[str, str] = {}
        self._journal: Journal | None = None
        self._pending: Reader | None = None

    async def prepare(
        self, config: Config, names: Collection[str], contents: Mapping[str, str]
    ) -> dict[str, SinkRun]:
        """Those of the sinks that don't run yet as the configuration has them, open as far as they
        can be while the others run. Raises StartupError."""
        held = {run.path for run in self._runs.values()}
        async with AsyncExitStack() as opened:
            fresh: dict[str, SinkRun] = {}
            for name in names:
                if self._goes_on(name, config, contents):
                    continue
                run = fresh[name] = SinkRun(
                    name,
                    config,
                    sink=self._backends.sink(name, config.sinks[name]),
                    bus=self._bus,
                    journal=self._journal or await self._open_journal(config),
                    metrics=self._metrics,
                    progress=Progress(time.monotonic),
                    traces=self._traces,
                )
                opened.push_async_callback(run.close)
                if run.path is None or run.path not in held:
                    await run.open()
            opened.pop_all()
        return fresh

    def apply(
        self,
        config: Config,
        names: Collection[str],
        contents: Mapping[str, str],
        fresh: Mapping[str, SinkRun],
    ) -> None:
        """Run these sinks and no others; `fresh` is what `prepare` gave."""
        self._contents = contents
        for name in [name for name in self._runs if name not in names or name in fresh]:
            self._retire(name)
        for run in self._runs.values():
            run.follow(config)
        leaving = self._loops.stopping
        for name, run in fresh.items():
            self._launch(name, run, leaving)

    def readers(self) -> dict[str, Reader]:
        """By loop, of those that are members now."""
        found = {loop_of(name): run.reader for name, run in self._runs.items()}
        found[FORWARDER] = self._pending
        return {loop: reader for loop, reader in found.items() if reader is not None}

    def _goes_on(self, name: str, config: Config, contents: Mapping[str, str]) -> bool:
        run = self._runs.get(name)
        if run is None:
            return False
        same = referred.of_sink(name, contents) == referred.of_sink(name, self._contents)
        return same and goes_on(run.settings, config.sinks[name])

    def _launch(self, name: str, run: SinkRun, leaving: Collection[asyncio.Task[bool]]) -> None:
        loop = loop_of(name)
        self._runs[name] = run
        self._progress[loop] = run.progress
        self._metrics.sinks.show(name)
        self._metrics.loops.show(loop)
        self._metrics.loops.watch({loop: run.progress})
        self._loops.start(loop, partial(run.run, leaving), run.close)

    def _retire(self, name: str) -> None:
        """Let it settle what it has in hand and leave; what was shown of it goes after that."""
        loop = loop_of(name)
        del self._runs[name], self._progress[loop]
        self._lag.forget(loop)
        self._loops.stop(loop).add_done_callback(lambda _: self._forget(name))

    def _forget(self, name: str) -> None:
        if name not in self._runs:
            self._metrics.sinks.forget(name)
            self._metrics.loops.forget(loop_of(name))

    async def _open_journal(self, config: Config) -> Journal:
        """The journal, and the loop that forwards from it."""
        bus = build_bus.journal_bus(config)
        self._stack.push_async_callback(bus.close)
        try:
            await bus.open(TOPICS, CHANGELOGS)
            self._pending = await bus.reader(GROUP, [FORWARDED])
        except BusUnavailable as error:
            raise StartupError(f"failures.journal: {error}") from error
        persist = Persistence(FORWARDER, self._metrics, Progress(time.monotonic))
        topic = build_bus.failures(config).topic
        forwarding = partial(forward, self._pending, self._bus, topic, persist)
        self._loops.start(FORWARDER, forwarding, self._pending.close)
        self._journal = Journal(bus, version=version("hookbus"), now=time.time)
        return self._journal
