"""What the tests of dead letters share: letters written by hand, and the commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from hookbus.router import build, build_bus
from hookbus.router.configuration import config_file
from hookbus.router.dead_letters import DeadLetterOffice
from hookbus.router.types import Output, Record
from tests.processes import Setup, command

JSON = dict[str, Any]


def send(setup: Setup, outputs: list[Output]) -> None:
    """Append records to topics of a written setup, as any client may."""

    async def publish() -> None:
        config = config_file.load(setup.file)
        bus = build_bus.bus(config)
        try:
            await bus.open(build_bus.topics(config))
            await bus.publish(outputs)
        finally:
            await bus.close()

    asyncio.run(publish())


def bury(setup: Setup, write: Callable[[DeadLetterOffice], list[Output]]) -> None:
    """Append dead letters as the service would write them."""
    send(setup, write(build.office(config_file.load(setup.file))))


def listed(setup: Setup, *options: str) -> list[JSON]:
    """What `deadletters list` prints."""
    return _json(command("deadletters", "list", "-c", str(setup.file), *options).stdout)


def replay(setup: Setup, *options: str, code: int = 0) -> JSON:
    """The summary of `deadletters replay`, with what it `told` on stderr."""
    done = command("deadletters", "replay", "-c", str(setup.file), *options, code=code)
    (summary,) = _json(done.stdout)
    return summary | {"told": _json(done.stderr)}


def record(setup: Setup, topic: str, offset: int, *, partition: int = 0) -> Record:
    """A record that a topic of the setup may never have had."""
    return Record(setup.topic(topic), partition, offset, 1_700_000_000_000, b"key", b"{}")


def _json(output: bytes) -> list[JSON]:
    return [json.loads(line) for line in output.splitlines()]
