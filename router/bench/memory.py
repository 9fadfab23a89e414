"""The memory of a router process: at the start, after some events, and after many more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hookbus.router import build_bus
from hookbus.router.bench.budget import Budget
from hookbus.router.bench.events import sessions
from hookbus.router.bench.routing import fill
from hookbus.router.bench.running import Running, running
from hookbus.router.bench.timing import Result
from hookbus.router.configuration.config_file import parse
from hookbus.router.types import Bus

_CONFIG: Final = """
bus: {{sqlite: {{path: {folder}/bus.db, retention: 2s}}, create_topics: {{partitions: 4}}}}
ingress: {{agents: {{topics: [in]}}}}
routes:
  whole: {{topic: whole, capture: full}}
  structure: {{topic: structure, capture: metadata}}
  presence: {{topic: presence, capture: metadata, content: {{default: omit}}}}
dead_letters: {{topic: dead}}
"""
_PORTION: Final = 100  # sessions
_AHEAD: Final = 10_000  # events that may wait
_NEAR: Final = 30_000  # events before a mark, in which the memory is looked at
_RECEIVED: Final = "hookbus_received_total"
_MEGABYTE: Final = 1_000_000


async def memory(budget: Budget) -> Result:
    """Only the router, on the embedded bus, from a process that appends as fast as it is read. The
    requests that it remembers have the default bounds. Each is answered, so that few are open, and
    the answered ones reach their bound before the first mark: what grows after that has none."""
    with TemporaryDirectory(prefix="hookbus-bench-") as folder:
        text = _CONFIG.format(folder=folder)
        with running(text, Path(folder), "--only", "router") as process:
            return await _measure(build_bus.bus(parse(text)), process, budget)


async def _measure(bus: Bus, process: Running, budget: Budget) -> Result:
    found = {"start": await _resident(process)}
    try:
        await bus.open(["in"])
        started = asyncio.get_running_loop().time()
        sent = 0
        for mark in budget.memory_marks:
            sent, found[str(mark)] = await _feed(bus, process, sent, mark)
        elapsed = asyncio.get_running_loop().time() - started
    finally:
        await bus.close()
    first, last = (found[str(mark)] for mark in budget.memory_marks)
    return Result(
        "memory", round(sent / elapsed, 1), {}, rss_mb=found, growth=round(last / first - 1, 4)
    )


async def _feed(bus: Bus, process: Running, sent: int, mark: int) -> tuple[int, float]:
    """Append whole sessions until so many events have been sent, and wait for the last. Also the
    memory towards the end: the least of a few looks, as what a batch takes doesn't stay."""
    looks: list[float] = []
    while sent < mark:
        samples = list(sessions(sent // 14, _PORTION))[: mark - sent]
        await fill(bus, "in", samples)
        sent += len(samples)
        await asyncio.to_thread(process.reaches, _RECEIVED, sent - _AHEAD)
        if mark - sent < _NEAR:
            looks.append(await _resident(process))
    await asyncio.to_thread(process.reaches, _RECEIVED, sent)
    return sent, min(looks)


async def _resident(process: Running) -> float:
    size = await asyncio.to_thread(process.metric, "process_resident_memory_bytes")
    return round(size / _MEGABYTE, 1)
