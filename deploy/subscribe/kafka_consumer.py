"""Reads a route's topic from Kafka: chooses by the headers alone, and commits after the work.

    pip install aiokafka
    python kafka_consumer.py --bootstrap kafka:9092 --topic hookbus.siem --group my-app \
        --type 'user.elicitation.*'

Prints one line of JSON for each event. What `handle` has not finished comes again after a crash, so
it has to bear an event twice: `(source, id)` tells.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from typing import Any
from urllib.parse import unquote

from aiokafka import AIOKafkaConsumer


def header(record: Any, name: str) -> str | None:
    """The value of a header; of a name that comes twice the last counts."""
    values = [value for key, value in record.headers if key == name]
    return unquote(values[-1].decode()) if values else None


def is_wanted(record: Any, wanted: str, captures: list[str]) -> bool:
    """By headers, without parsing. `wanted` is a type, or a family such as `tool.*`."""
    kind = header(record, "ce_type") or ""
    family = wanted.removesuffix("*")
    matches = kind.startswith(family) if wanted.endswith("*") else kind == wanted
    return matches and (not captures or header(record, "hookbus-capture") in captures)


async def handle(record: Any) -> None:
    """Your work. It is done when this returns."""
    event = json.loads(record.value)
    seen = {
        "source": header(record, "ce_source"),
        "id": header(record, "ce_id"),
        "type": header(record, "ce_type"),
        "capture": header(record, "hookbus-capture"),
        "members": sorted(event),
    }
    print(json.dumps(seen), flush=True)


async def consume(options: argparse.Namespace) -> None:
    """Until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    consumer = AIOKafkaConsumer(
        options.topic,
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,  # committed below, when the work is done
        isolation_level="read_committed",  # with `delivery: exactly-once`, hides what was aborted
    )
    await consumer.start()
    try:
        while not stop.is_set():
            fetched = await consumer.getmany(timeout_ms=500)
            for records in fetched.values():
                for record in records:
                    if is_wanted(record, options.type, options.capture):
                        await handle(record)
            if fetched:
                await consumer.commit()
    finally:
        await consumer.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the events of a hookbus topic.")
    parser.add_argument("--bootstrap", required=True, help="host:port, several with commas")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True, help="a consumer group of your own")
    parser.add_argument("--type", default="*", help="a type, or a family such as tool.*")
    parser.add_argument("--capture", action="append", default=[], help="only of this level")
    asyncio.run(consume(parser.parse_args()))


if __name__ == "__main__":
    main()
