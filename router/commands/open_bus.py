"""The bus as the commands see it. Where they only read, nothing is made by looking at it."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

from hookbus.router import build_bus
from hookbus.router.configuration.config import Config
from hookbus.router.errors import StartupError, TopicsMissing
from hookbus.router.types import Bus


@asynccontextmanager
async def opened(
    config: Config,
    topics: Sequence[str] = (),
    changelogs: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Bus]:
    """The bus, open, with these topics made where they are missing."""
    bus = build_bus.bus(config)
    try:
        await bus.open(topics, changelogs)
        yield bus
    finally:
        await bus.close()


@asynccontextmanager
async def reading(config: Config) -> AsyncIterator[Bus]:
    """The bus, open. Raises StartupError if there is none, or if a topic that is read is absent."""
    await _require_file(config)
    try:
        async with opened(config) as bus:
            yield bus
    except TopicsMissing as error:
        absent = "; ".join(
            f"there is no topic {one}: {_advice(config, one)}" for one in error.topics
        )
        raise StartupError(absent) from error


async def _require_file(config: Config) -> None:
    """Opening the embedded bus would make one, for whoever runs the command to own."""
    sqlite = config.bus.sqlite
    if sqlite is not None and not await asyncio.to_thread(Path(sqlite.path).exists):
        raise StartupError(f"there is no bus {sqlite.path} on this machine: `hookbus run` makes it")


def _advice(config: Config, topic: str) -> str:
    known = [*build_bus.topics(config), *build_bus.changelogs(config)]
    if topic in known:
        if config.bus.create_topics is not None:
            return "`hookbus run` makes it"
        return "create it, or set bus.create_topics"
    near = difflib.get_close_matches(topic, known, n=1)
    return f"did you mean {near[0]}?" if near else "the configuration has none of this name"
