"""What a second worker adds: two processes of the router loop against one, where the pipeline is
what takes the time."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hookbus.router import build_bus
from hookbus.router.bench.budget import Budget
from hookbus.router.bench.events import sessions, six_type_mix
from hookbus.router.bench.in_memory import REDACTING, stepping
from hookbus.router.bench.kafka_topics import fresh, removed_topics
from hookbus.router.bench.routing import fill
from hookbus.router.bench.running import PATIENCE, Running, bus_section, running
from hookbus.router.bench.timing import Result, rate, summary
from hookbus.router.configuration.config_file import parse
from hookbus.router.errors import StartupError

_ONE: Final = "one worker"
_MACHINE: Final = "the machine's own gain"
"""What one worker does, times what two processes gain that run the pipeline in memory and share
nothing but the machine: two cores are seldom twice one."""
_CONFIG: Final = """
bus:
  {bus}
  create_topics: {{partitions: 16}}
  group: {name}
ingress: {{agents: {{topics: [{name}.in]}}}}
routes:
  review: {{topic: {name}.review, capture: redacted, redact: true}}
  structure: {{topic: {name}.structure, capture: metadata}}
dead_letters: {{topic: {name}.dead}}
workers: {workers}
"""
_ROUTED: Final = "hookbus_events_total"
_LOOK: Final = 1.0  # seconds between two looks at the metrics
_WARM, _LATE = 0.25, 0.9
"""Parts of the events before which the workers still share out the partitions, and after which one
may be without work."""


async def workers(name: str, bootstrap: str | None, budget: Budget) -> Result:
    """On Kafka, or on the embedded bus if there is nothing to connect to."""
    rounds = []
    for _ in range(min(budget.rounds, 3)):
        one = await _rate(1, bootstrap, budget)
        two = await _rate(2, bootstrap, budget)
        gain = await asyncio.to_thread(_gain, 8 * budget.seconds)
        rounds.append({name: two, _ONE: one, _MACHINE: one * gain})
    return summary(name, [_ONE, _MACHINE], rounds)


def _gain(seconds: float) -> float:
    """How much faster two processes are than one that have nothing to do with each other."""
    return _together(2, seconds) / _together(1, seconds)


def _together(count: int, seconds: float) -> float:
    """Events per second of so many processes that start at once."""
    context = get_context("spawn")
    start, rates = context.Barrier(count), context.SimpleQueue()
    processes = [context.Process(target=_alone, args=(start, rates, seconds)) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise StartupError("a process that is measured has ended")
    return sum([float(rates.get()) for _ in processes])


def _alone(start: Barrier, rates: SimpleQueue[float], seconds: float) -> None:
    """Measure a redacting pipeline in memory, without a bus."""
    work = stepping(six_type_mix(), REDACTING, copies=4)
    work()  # what is made at the first use isn't measured
    start.wait(PATIENCE)
    rates.put(rate(work, seconds))


async def _rate(count: int, bootstrap: str | None, budget: Budget) -> float:
    """Events per second of so many workers, from a topic that is full before they start."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hookbus-bench-")))
        text = _config(folder, bootstrap, count)
        config = parse(text)
        if bootstrap is not None:
            await stack.enter_async_context(removed_topics(bootstrap, config))
        bus = build_bus.bus(config)
        stack.push_async_callback(bus.close)
        await bus.open(build_bus.topics(config), build_bus.changelogs(config))
        samples = list(sessions(0, budget.worker_sessions))
        await fill(bus, build_bus.ingress_topics(config)[0], samples)
        process = stack.enter_context(running(text, folder, "--only", "router"))
        return await asyncio.to_thread(_steady, process, len(samples))


def _config(folder: Path, bootstrap: str | None, workers: int) -> str:
    bus = bus_section(folder, bootstrap)
    return _CONFIG.format(bus=bus, name=fresh(), workers=workers)


def _steady(process: Running, events: int) -> float:
    """Events per second while all workers have work."""
    seen = [(time.perf_counter(), 0.0)]
    while seen[-1][1] < events:
        time.sleep(_LOOK)
        seen.append((time.perf_counter(), process.metric(_ROUTED)))
    steady = [one for one in seen if _WARM * events <= one[1] <= _LATE * events]
    if len({routed for _, routed in steady}) < 2:  # done within a look or two
        steady = seen
    (began, first), (ended, last) = steady[0], steady[-1]
    return (last - first) / (ended - began)
