"""What a second worker adds: two processes of the router loop against one, where the pipeline is
what takes the time."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hookbus.router import build_bus
from hookbus.router.bench.budget import Budget
from hookbus.router.bench.events import sessions
from hookbus.router.bench.kafka_topics import fresh, removed_topics
from hookbus.router.bench.routing import fill
from hookbus.router.bench.running import Running, running
from hookbus.router.bench.timing import Result, summary
from hookbus.router.configuration.config_file import parse

_ONE: Final = "one worker"
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
_LOOK: Final = 0.2  # seconds between two looks at the metrics
_WARM, _LATE = 0.25, 0.9
"""Parts of the events before which the workers still share out the partitions, and after which one
may be without work."""


async def workers(name: str, bootstrap: str | None, budget: Budget) -> Result:
    """On Kafka, or on the embedded bus if there is nothing to connect to."""
    rounds = [
        {_ONE: await _rate(1, bootstrap, budget), name: await _rate(2, bootstrap, budget)}
        for _ in range(min(budget.rounds, 3))
    ]
    return summary(name, [_ONE], rounds)


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
    bus = f"sqlite: {{path: {folder}/bus.db}}"
    if bootstrap is not None:
        bus = f'kafka: {{bootstrap_servers: "{bootstrap}"}}'
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
