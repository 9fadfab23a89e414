"""`hookbus tail`; see `hookbus.router.usage.tail`."""

from __future__ import annotations

import argparse
import asyncio
import sys

from hookbus.router.commands.common import load_config
from hookbus.router.commands.open_bus import reading
from hookbus.router.configuration.config import Config
from hookbus.router.sinks.jsonlines import line


def execute(options: argparse.Namespace) -> int:
    asyncio.run(_tail(load_config(options.config), options.topic, follow=options.follow))
    return 0


async def _tail(config: Config, topic: str, *, follow: bool) -> None:
    async with reading(config) as bus:
        async for record in bus.scan(topic, follow=follow):
            sys.stdout.buffer.write(line(record))
            if follow:
                sys.stdout.buffer.flush()
        sys.stdout.buffer.flush()
