"""`hookbus publish`; see `hookbus.router.usage.publish`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from typing import Any, Final

import orjson

from hookbus.router import build_bus
from hookbus.router.commands.common import batches, load_config, unknown
from hookbus.router.configuration.config import Config
from hookbus.router.sinks.threads import in_thread
from hookbus.router.types import Output

_BATCH: Final = 500


def execute(options: argparse.Namespace) -> int:
    config = load_config(options.config)
    if options.ingress not in config.ingress:
        raise unknown("--ingress", options.ingress, "ingress", config.ingress)
    topic = config.ingress[options.ingress].topics[0]
    asyncio.run(_publish(config, topic, batches(options.file, _BATCH)))
    return 0


async def _publish(config: Config, topic: str, source: Iterator[list[bytes]]) -> None:
    """Says how many lines are durable, also if it fails in the middle."""
    bus = build_bus.bus(config)
    count = 0
    try:
        await bus.open([topic])
        while batch := await in_thread(lambda: next(source, None)):  # Ctrl-C while it waits
            await bus.publish([Output(topic, key_of(line), line) for line in batch])
            count += len(batch)
    finally:
        print(count, file=sys.stderr)
        await bus.close()


def key_of(line: bytes) -> bytes | None:
    """The `source` of the event in a line, bare or in a JSON-RPC message, as a record key."""
    for event in _events(line):
        source = event.get("source") if isinstance(event, dict) else None
        if isinstance(source, str):
            return source.encode()
    return None


def _events(line: bytes) -> Iterator[Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return
    yield value
    params = value.get("params") if isinstance(value, dict) else None
    yield params.get("event") if isinstance(params, dict) else None
