"""A worker as its supervisor sees it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from hookbus.router.configuration import config_file
from hookbus.router.processes.part import choose
from hookbus.router.processes.workers.channel import Start
from hookbus.router.processes.workers.child import Child

EXAMPLE = Path(__file__).parents[4] / "deploy/examples/one-machine.yaml"


def test_a_worker_that_has_ended_prevents_no_reload() -> None:
    """The next one starts under whatever holds then; the others would wait for its answer."""
    config = config_file.load(EXAMPLE)
    part = choose(config, [])

    async def play() -> None:
        async with asyncio.timeout(60):
            start = Start("router-1", 1, "another version", config, part, "error")
            child = await Child.start(start, time.monotonic)
            assert await child.ended() != 0
            assert await child.prepare(config, part) == []

    asyncio.run(play())
