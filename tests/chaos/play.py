"""The play: a service under load while everything around it breaks, then a count."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

from hookbus.router import build_bus
from hookbus.router.configuration import config_file
from hookbus.router.errors import BusUnavailable
from hookbus.router.types import Bus, Output
from tests.brokers import Broker
from tests.chaos.backend import TROUBLES, Backend, Mode
from tests.chaos.checker import Evidence, Row, check
from tests.chaos.clock import Clock
from tests.processes import Metrics, Processes, Service, Setup

SOURCES = 16
RATE = 40
"""Events a second."""
WARM_UP = 5.0
QUIET = 15.0
"""Seconds of the calm at the start, and of the lone outage that is compared with it."""
FULL = 300.0
"""Seconds from which a run is a full one, whose delivery times are judged too; a shorter one, as in
CI, tells them only, because a time on a busy machine says little."""
CALM = 20
"""Looks, a second apart, that find nothing left to do. The partitions of a killed router belong to
nobody, and nobody tells their lag, until its session is over and the others have shared them."""
SETTLED = 240.0
"""Seconds that everything may take to arrive once nothing breaks any more."""

_TEMPLATE: dict[str, Any] = {
    "type": "tool.before",
    "harness": {"name": "chaos", "version": "1"},
    "session": {"id": "s"},
    "call": {"id": "c"},
    "path": "native",
    "tool": {"name": "Bash", "origin": "native", "input": {"command": "make test"}},
}


class Kafka:
    """The `bus` section for a cluster, as tests.processes asks for it."""

    kind = "kafka"

    def __init__(self, nodes: list[Broker]) -> None:
        self._servers = ",".join(node.bootstrap for node in nodes)

    def section(self, folder: Path) -> dict[str, Any]:
        return {
            "kafka": {
                "bootstrap_servers": self._servers,
                "session_timeout": "6s",
                "request_timeout": "10s",
            }
        }


class Play:
    """One run; `seconds` is how long things break."""

    def __init__(
        self,
        nodes: list[Broker],
        folder: Path,
        clock: Clock,
        processes: Processes,
        *,
        seconds: float,
        seed: int,
    ) -> None:
        self._nodes = nodes
        self._clock = clock
        self._processes = processes
        self._seconds = seconds
        self._random = random.Random(seed)
        self._backends = {"open": Backend(), "closed": Backend()}
        self._setup = Setup(Kafka(nodes), folder)  # type: ignore[arg-type]
        self._sent: list[str] = []
        self._published: dict[str, float] = {}
        self._arrived: dict[str, float] = {}
        self._done: dict[str, int] = {}
        self._stop = asyncio.Event()

    async def run(self) -> list[Row]:
        """The checker's table."""
        for backend in self._backends.values():
            await backend.start()
        self._configure()
        archive = await self._started("--only", "sink:archive")
        await self._started("--only", "sink:audit")
        await self._started("--only", "sink:open", "--only", "sink:closed")
        routers = [await self._started("--only", "router")]
        async with self._load():
            await asyncio.sleep(WARM_UP)
            calm = await self._measured(None)
            outage = await self._measured(self._backends["closed"])
            await self._break_things(routers, archive)
        await self._heal(archive)
        settled = await self._until_settled()
        rows = list(check(await self._evidence()))
        judged = self._seconds >= FULL
        return [*rows, _latency(calm, outage, judged=judged), settled, *self._counts()]

    def _configure(self) -> None:
        setup = self._setup
        setup.tree["bus"]["create_topics"]["replication"] = 3
        setup.route("full", capture="full")
        setup.route("meta", capture="metadata")
        setup.file_sink("archive", "full")
        setup.file_sink("audit", "meta", "failures")
        setup.journal_only("audit")
        for name, policy in (("open", "fail-open"), ("closed", "fail-closed")):
            http = {"url": f"http://127.0.0.1:{self._backends[name].port}/hooks"}
            setup.sink(
                name, "meta", policy=policy, http=http, timeout="500ms", deadline="1s",
                retry={"initial": "50ms", "maximum": "1s"},
            )  # fmt: skip
        setup.write()

    async def _started(self, *arguments: str) -> Service:
        service = self._processes.run(self._setup, *arguments)
        await asyncio.to_thread(service.ready)
        return service

    @contextlib.asynccontextmanager
    async def _load(self) -> AsyncIterator[None]:
        """Publish and watch the audit sink meanwhile."""
        tasks = [asyncio.create_task(self._publish()), asyncio.create_task(self._watch())]
        try:
            yield
        finally:
            self._stop.set()
            await asyncio.gather(*tasks)

    async def _publish(self) -> None:
        bus = build_bus.bus(config_file.load(self._setup.file))
        topic = self._setup.topic("in")
        await bus.open([topic])
        number, started = 0, time.monotonic()
        while not self._stop.is_set():
            due = int((time.monotonic() - started) * RATE) - number
            batch = [_event(topic, n) for n in range(number, number + min(max(due, 0), 200))]
            await _acknowledged(bus, batch)
            for n in range(number, number + len(batch)):
                self._sent.append(f"e{n}")
                self._published[f"e{n}"] = time.monotonic()
            number += len(batch)
            await asyncio.sleep(0.02)
        await bus.close()

    async def _watch(self) -> None:
        """When each event is at the audit sink, to some ten milliseconds."""
        path = self._setup.folder / "audit.jsonl"
        read = 0
        while not self._stop.is_set():
            with path.open("rb") as file:
                file.seek(read)
                text = file.read()
            complete = text[: text.rfind(b"\n") + 1]
            read += len(complete)
            now = time.monotonic()
            for line in complete.splitlines():
                self._arrived.setdefault(json.loads(line)["id"], now)
            await asyncio.sleep(0.01)

    async def _measured(self, broken: Backend | None) -> list[float]:
        """Delivery times at the healthy sink while at most one other sink is out."""
        if broken is not None:
            await broken.become("refuse")
        begin = time.monotonic()
        await asyncio.sleep(QUIET)
        end = time.monotonic()
        await asyncio.sleep(3)
        if broken is not None:
            await broken.become("ok")
        return [
            self._arrived[each] - sent
            for each, sent in self._published.items()
            if begin <= sent <= end and each in self._arrived
        ]

    async def _break_things(self, routers: list[Service], archive: Service) -> None:
        end = time.monotonic() + self._seconds
        deeds: list[tuple[str, float, Callable[[], Awaitable[None]]]] = [
            ("router killed", 16.0, lambda: self._kill_router(routers)),
            ("router joined or left", 32.0, lambda: self._join_or_leave(routers)),
            ("broker killed", 36.0, self._restart_broker),
            ("backend troubled", 6.0, self._trouble),
            ("disk full", 45.0, lambda: self._fill_disk(archive)),
        ]
        if self._clock.can_step:
            deeds.append(("clock stepped", 25.0, self._step_clock))
        async with asyncio.TaskGroup() as group:
            for name, every, deed in deeds:
                group.create_task(self._repeat(name, every, deed, end))

    async def _repeat(
        self, name: str, every: float, deed: Callable[[], Awaitable[None]], end: float
    ) -> None:
        while (wait := self._random.uniform(0.5, 1.5) * every) < end - time.monotonic():
            await asyncio.sleep(wait)
            await deed()
            self._done[name] = self._done.get(name, 0) + 1

    async def _kill_router(self, routers: list[Service]) -> None:
        victim = self._random.choice(routers)
        routers.remove(victim)
        await asyncio.to_thread(victim.kill)
        routers.append(self._processes.run(self._setup, "--only", "router"))

    async def _join_or_leave(self, routers: list[Service]) -> None:
        if len(routers) == 1:
            routers.append(self._processes.run(self._setup, "--only", "router"))
        else:
            leaving = routers.pop(0)
            leaving.terminate()
            await asyncio.to_thread(leaving.wait)

    async def _restart_broker(self) -> None:
        node = self._random.choice(self._nodes)
        await asyncio.to_thread(node.kill)
        await asyncio.sleep(self._random.uniform(1, 5))
        await asyncio.to_thread(node.start)

    async def _trouble(self) -> None:
        backend = self._random.choice(list(self._backends.values()))
        mode: Mode = self._random.choice(TROUBLES)
        await backend.become(mode)
        await asyncio.sleep(self._random.uniform(0.5, 6))
        await backend.become("ok")

    async def _fill_disk(self, archive: Service) -> None:
        """No file of the process may grow any more, as if its disk were full."""
        resource.prlimit(archive.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        await asyncio.sleep(self._random.uniform(1, 5))
        self._free_disk(archive)

    async def _step_clock(self) -> None:
        self._clock.step(self._random.choice((-7200, -90, 0, 90, 7200)))

    def _free_disk(self, archive: Service) -> None:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(archive.pid, resource.RLIMIT_FSIZE, unlimited)

    async def _heal(self, archive: Service) -> None:
        self._free_disk(archive)
        self._clock.step(0)  # Kafka takes no record from a clock that is an hour fast
        for backend in self._backends.values():
            await backend.become("ok")

    async def _until_settled(self) -> Row:
        """Wait until every group has passed everything, and goes on to for so long that no
        partition can still be waiting for a member that died."""
        calm, began = 0, time.monotonic()
        while calm < CALM:
            await asyncio.sleep(1)
            behind = await asyncio.to_thread(self._behind)
            calm = 0 if behind else calm + 1
            if time.monotonic() > began + SETTLED:
                raise TimeoutError(f"not settled: {behind}")
        return "settled once nothing broke any more", f"{time.monotonic() - began:.0f} s", True

    def _behind(self) -> list[str]:
        """What is not done yet, in words."""
        return [each for service in self._processes.running() for each in _undone(service)]

    async def _evidence(self) -> Evidence:
        bus = build_bus.bus(config_file.load(self._setup.file))
        topic = self._setup.topic
        await bus.open([topic(name) for name in ("full", "meta", "dead")])
        ids_at = {}
        for name in ("full", "meta"):
            async for record in bus.scan(topic(name), follow=False):
                at = (record.topic, record.partition, record.offset)
                ids_at[at] = json.loads(record.value or b"{}")["id"]
        letters = [
            json.loads(record.value or b"{}")
            async for record in bus.scan(topic("dead"), follow=False)
        ]
        await bus.close()
        folder = self._setup.folder
        return Evidence(
            self._sent,
            SOURCES,
            folder / "archive.jsonl",
            folder / "audit.jsonl",
            {name: backend.taken for name, backend in self._backends.items()},
            letters,
            ids_at,
        )

    def _counts(self) -> list[Row]:
        return [(name, f"{count} times", True) for name, count in sorted(self._done.items())]


def _undone(service: Service) -> Iterator[str]:
    ready, _ = service.get("/readyz")
    status, text = service.get("/metrics")
    if (ready, status) != (200, 200):
        yield f"{service.name}: {service.logs[-2:]}"
        return
    shown = Metrics(text)
    for name in ("hookbus_lag", "hookbus_journal_pending"):
        if shown.total(name):
            yield f"{service.name}: {name} {shown.total(name):.0f}, {service.logs[-2:]}"


def _latency(calm: list[float], outage: list[float], *, judged: bool) -> Row:
    before, during = (quantiles(times, n=100)[98] for times in (calm, outage))
    shown = f"{before * 1000:.0f} ms calm, {during * 1000:.0f} ms while another sink is out"
    holds = during <= 1.5 * before
    return "p99 at a healthy sink within 1.5 times", shown, holds or not judged


def _event(topic: str, number: int) -> Output:
    source = f"urn:agent:{number % SOURCES}"
    event = {"id": f"e{number}", "source": source, "time": "2026-11-29T10:00:00Z", **_TEMPLATE}
    return Output(topic, source.encode(), json.dumps(event).encode())


async def _acknowledged(bus: Bus, batch: list[Output]) -> None:
    """An agent repeats what was not acknowledged."""
    while batch:
        try:
            return await bus.publish(batch)
        except BusUnavailable:
            await asyncio.sleep(0.2)
    return None
