"""How a loop becomes a member of its consumer group."""

from __future__ import annotations

from collections.abc import Sequence

from hookbus.router.configuration.config import Config
from hookbus.router.processes.persistence import Persistence
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.types import Bus, Reader


async def join(
    bus: Bus,
    config: Config,
    loop: str,
    topics: Sequence[str],
    metrics: Metrics,
    progress: Progress,
) -> Reader:
    """Join as soon as the bus answers. Raises StartupError or BusFatal."""
    group = _group(config, loop)
    return await Persistence(loop, metrics, progress)(lambda: bus.reader(group, topics))


async def probe(bus: Bus, config: Config, loop: str, topics: Sequence[str]) -> None:
    """Raises StartupError, BusFatal or BusUnavailable if the loop can't join, as far as that is
    known without joining."""
    await bus.probe(_group(config, loop), topics)


def _group(config: Config, loop: str) -> str:
    return f"{config.bus.group}.{loop.replace(':', '.')}"
