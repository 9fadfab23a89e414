"""`hookbus failures`; see `hookbus.router.usage.failures`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from hookbus.router import build_bus
from hookbus.router.commands.common import complain, period, write
from hookbus.router.commands.open_bus import reading
from hookbus.router.commands.registered import load_registered
from hookbus.router.configuration.config import Config
from hookbus.router.errors import ConfigError
from hookbus.router.failure_list import Found, failures
from hookbus.router.journal import TOPICS
from hookbus.router.types import Bus


def execute(options: argparse.Namespace) -> int:
    since, until = period(options)

    def wanted(found: Found) -> bool:
        return (
            options.sink in (None, found.sink)
            and (since is None or found.timestamp >= since)
            and (until is None or found.timestamp < until)
        )

    config = load_registered(options, lambda backend: None).config
    if config.failures is None:
        raise ConfigError(["failures: missing"])
    asyncio.run(_list(config, wanted, journal_only=options.journal_only))
    return 0


async def _list(config: Config, wanted: Callable[[Found], bool], *, journal_only: bool) -> None:
    async with AsyncExitStack() as stack:
        journal = await _open_journal(config, stack)
        bus = None if journal_only else await stack.enter_async_context(reading(config))
        async for found in failures(journal, bus, build_bus.failures(config).topic):
            if wanted(found):
                write(found.shown())


async def _open_journal(config: Config, stack: AsyncExitStack) -> Bus | None:
    """None if there is none: it is not made by looking at it."""
    path = build_bus.failures(config).journal
    if not await asyncio.to_thread(Path(path).exists):
        complain({"journal": path, "found": False})
        return None
    journal = build_bus.journal_bus(config)
    stack.push_async_callback(journal.close)
    await journal.open(TOPICS)
    return journal
