"""One sink as this process runs it: its backend, its membership, its loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

from hookbus.router import build, build_bus, build_sinks
from hookbus.router.configuration import plan
from hookbus.router.configuration.config import Config, SinkConfig
from hookbus.router.journal import Journal
from hookbus.router.processes.loops import unless
from hookbus.router.processes.membership import join
from hookbus.router.processes.part import loop_of
from hookbus.router.sink_loop import SinkLoop
from hookbus.router.sinks.contract import Sink
from hookbus.router.telemetry.build_traces import Traces
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.types import Bus, Reader


class SinkRun:
    """Opens, joins and runs in this order; whatever is not done yet when `run` is called is done
    then."""

    def __init__(
        self,
        name: str,
        config: Config,
        *,
        sink: Sink,
        bus: Bus,
        journal: Journal,
        metrics: Metrics,
        progress: Progress,
        traces: Traces,
    ) -> None:
        self._name = name
        self._config = config
        self._bus = bus
        self._journal = journal
        self._metrics = metrics
        self.progress = progress
        self._traces = traces
        self._sink = sink
        self._opened = False
        self._closed = False
        self._loop: SinkLoop | None = None
        self.reader: Reader | None = None

    @property
    def settings(self) -> SinkConfig:
        return self._config.sinks[self._name]

    @property
    def path(self) -> str | None:
        """The file that it writes, which nobody else can open meanwhile."""
        return self.settings.file.path if self.settings.file is not None else None

    async def open(self) -> None:
        """Raises StartupError if the sink can't work as it is configured."""
        await self._sink.open()
        self._opened = True

    async def join(self) -> None:
        """Become a member of the sink's group, as soon as the bus lets it."""
        topics = build_bus.sink_topics(self._config, self._name)
        loop = loop_of(self._name)
        self.reader = await join(
            self._bus, self._config, loop, topics, self._metrics, self.progress
        )

    async def run(self, leaving: Collection[asyncio.Task[bool]], stop: asyncio.Event) -> None:
        """Until `stop` is set, as soon as those that are leaving are gone."""
        if not await unless(stop, self._get_ready(leaving)):
            return
        if self.reader is None:
            raise RuntimeError("the sink has not joined")
        self._loop = SinkLoop(
            self.reader,
            self._sink,
            build_sinks.terms(self._config, self._name),
            domains=plan.domains(self._config),
            office=build.office(self._config),
            journal=self._journal,
            metrics=self._metrics,
            progress=self.progress,
            clock=time.monotonic,
            spans=self._traces.sink(self._name, self.settings),
        )
        await self._loop.run(stop)

    def follow(self, config: Config) -> None:
        """Go on under another configuration that names the same backend and topics."""
        self._config = config
        if self._loop is not None:
            self._loop.follow(build_sinks.terms(config, self._name), plan.domains(config))

    async def _get_ready(self, leaving: Collection[asyncio.Task[bool]]) -> None:
        if leaving:
            await asyncio.wait(leaving)
        if not self._opened:
            await self.open()
        if self.reader is None:
            await self.join()

    async def close(self) -> None:
        """Leave the group and let go of the backend."""
        if self._closed:
            return
        self._closed = True
        reader, self.reader = self.reader, None
        if reader is not None:
            await reader.close()
        await self._sink.close()
