"""How long an event is on its way: from its append to an ingress to its line in a sink's file, at
half of the load that is sustained."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack, closing
from itertools import islice
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Final

from hookbus.router import build_bus
from hookbus.router.bench.budget import Budget
from hookbus.router.bench.events import sessions
from hookbus.router.bench.kafka_topics import fresh, removed_topics
from hookbus.router.bench.running import PATIENCE, bus_section, running
from hookbus.router.bench.timing import Result
from hookbus.router.configuration.config_file import parse
from hookbus.router.errors import StartupError
from hookbus.router.types import Bus, Output

_CONFIG: Final = """
bus:
  {bus}
  create_topics: {{partitions: 4}}
  group: {name}
ingress: {{agents: {{topics: [{name}.in]}}}}
routes: {{all: {{topic: {name}.all, capture: metadata}}}}
sinks:
  file: {{topics: [{name}.all], policy: fail-closed, file: {{path: {folder}/sink.jsonl}}}}
failures: {{topic: {name}.failures, journal: {folder}/journal.db, journal_only: [file]}}
dead_letters: {{topic: {name}.dead}}
"""
_ID: Final = re.compile(rb'"id":"(evt-[0-9-]+)"')
_TICK: Final = 0.005  # seconds between two appends
_LOOK: Final = 0.001  # seconds between two looks into the file
_WINDOW: Final = 2_000  # events on their way while the load is looked for
_PORTION: Final = 200


async def latency(name: str, bootstrap: str | None, budget: Budget) -> Result:
    """On Kafka, or on the embedded bus if there is nothing to connect to."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hookbus-bench-")))
        text = _config(folder, bootstrap)
        config = parse(text)
        if bootstrap is not None:
            await stack.enter_async_context(removed_topics(bootstrap, config))
        stack.enter_context(running(text, folder))
        bus = build_bus.bus(config)
        stack.push_async_callback(bus.close)
        topic = build_bus.ingress_topics(config)[0]
        await bus.open([topic])
        lines = stack.enter_context(closing(_Lines(folder / "sink.jsonl")))
        road = _Road(bus, topic, lines)
        await road.send_and_wait(_PORTION)  # what is made at the first use isn't measured
        load = await road.sustained(budget.load_seconds)
        times = await road.paced(load / 2, budget.latency_seconds)
    cuts = quantiles(times, n=100)
    return Result(
        name, round(load, 1), {}, p50_ms=round(cuts[49] * 1000, 2), p99_ms=round(cuts[98] * 1000, 2)
    )


def _config(folder: Path, bootstrap: str | None) -> str:
    return _CONFIG.format(bus=bus_section(folder, bootstrap), name=fresh(), folder=folder)


class _Lines:
    """The lines that come into a file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""

    def new(self) -> list[bytes]:
        """Those that are whole and have not been told yet."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return lines

    def close(self) -> None:
        self._file.close()


class _Road:
    """What is on its way from the ingress to the file."""

    def __init__(self, bus: Bus, topic: str, lines: _Lines) -> None:
        self._bus = bus
        self._topic = topic
        self._lines = lines
        self._samples = sessions(0, 10**9)
        self._sent: dict[bytes, float] = {}

    async def send_and_wait(self, events: int) -> None:
        await self._send(events)
        await self._drained()

    async def sustained(self, seconds: float) -> float:
        """Events a second, while there are always more than can be taken."""
        sent, started = 0, time.perf_counter()
        while not sent or time.perf_counter() - started < seconds:
            if len(self._sent) < _WINDOW:
                await self._send(_PORTION)
                sent += _PORTION
            else:
                await asyncio.sleep(_LOOK)
            self._arrived()
        await self._drained()
        return sent / (time.perf_counter() - started)

    async def paced(self, rate: float, seconds: float) -> list[float]:
        """How long each event takes at a steady rate, in seconds; two events at least."""
        times: list[float] = []
        sending = asyncio.create_task(self._send_paced(rate, seconds))
        while not sending.done():
            times += self._arrived()
            await asyncio.sleep(_LOOK)
        await sending
        return times + await self._drained()

    async def _send_paced(self, rate: float, seconds: float) -> None:
        sent, started = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds or sent < 2:
            due = int(elapsed * rate) - sent
            await self._send(due)
            sent += due
            await asyncio.sleep(_TICK)

    async def _send(self, events: int) -> None:
        samples = list(islice(self._samples, events))
        self._sent |= dict.fromkeys((one.id for one in samples), time.perf_counter())
        await self._bus.publish([Output(self._topic, one.source, one.value) for one in samples])

    def _arrived(self) -> list[float]:
        """The times that those took that have come since the last look."""
        lines, now = self._lines.new(), time.perf_counter()
        found = [match[1] for match in map(_ID.search, lines) if match is not None]
        return [now - self._sent.pop(one) for one in found if one in self._sent]

    async def _drained(self) -> list[float]:
        times: list[float] = []
        deadline = time.perf_counter() + PATIENCE
        while self._sent:
            if time.perf_counter() > deadline:
                raise StartupError("events did not arrive at the sink that is measured")
            times += self._arrived()
            await asyncio.sleep(_LOOK)
        return times
