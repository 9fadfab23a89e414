"""Kafka to Kafka: one record in, three out, against bare loops that copy the bytes three times."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]

from hookbus.router import build_bus
from hookbus.router.bench.bare import copy_by_batch, copy_by_send
from hookbus.router.bench.budget import Budget
from hookbus.router.bench.events import sessions
from hookbus.router.bench.kafka_topics import fresh, removed_topics
from hookbus.router.bench.routing import fill, routing
from hookbus.router.bench.timing import Result, summary
from hookbus.router.configuration.config import Config
from hookbus.router.configuration.config_file import parse
from hookbus.router.types import Bus

NAME: Final = "bus (Kafka)"
_PARTITIONS: Final = 4
_WARM_UP: Final = 100  # sessions: every partition, and what is made at the first use

_CONFIG: Final = """
bus:
  kafka: {{bootstrap_servers: "{bootstrap}"}}
  create_topics: {{partitions: {partitions}}}
  group: {name}
ingress: {{agents: {{topics: [{name}.in]}}}}
routes:
  whole: {{topic: {name}.whole, capture: full}}
  structure: {{topic: {name}.structure, capture: metadata}}
  presence: {{topic: {name}.presence, capture: metadata, content: {{default: omit}}}}
dead_letters: {{topic: {name}.dead}}
"""

Copy = Callable[[AIOKafkaConsumer, AIOKafkaProducer, list[str], int], Awaitable[None]]
Turn = Callable[[int, int], Awaitable[float]]
"""Copies sessions, given the number of the first and how many; events per second."""


async def bus_kafka(bootstrap: str, budget: Budget) -> Result:
    """All candidates are members of groups of their own, on topics of their own, which go at the
    end."""
    async with AsyncExitStack() as stack:
        turns = {
            NAME: await stack.enter_async_context(_ours(bootstrap)),
            "bare send loop": await stack.enter_async_context(_bare(bootstrap, copy_by_send)),
            "bare batch loop": await stack.enter_async_context(_bare(bootstrap, copy_by_batch)),
        }
        for turn in turns.values():
            await turn(0, min(_WARM_UP, budget.bus_sessions))
        rounds = [
            {
                who: await turn(_WARM_UP + number * budget.bus_sessions, budget.bus_sessions)
                for who, turn in turns.items()
            }
            for number in range(budget.rounds)
        ]
    return summary(NAME, [who for who in turns if who != NAME], rounds)


@asynccontextmanager
async def _ours(bootstrap: str) -> AsyncIterator[Turn]:
    config = _config(bootstrap)
    async with removed_topics(bootstrap, config), routing(config) as (bus, router):

        async def turn(first: int, count: int) -> float:
            events = await _fill(bus, config, first, count)
            return events / await router.run(events)

        yield turn


@asynccontextmanager
async def _bare(bootstrap: str, copy: Copy) -> AsyncIterator[Turn]:
    """With the settings of hookbus's own clients."""
    config = _config(bootstrap)
    bus = build_bus.bus(config)
    targets = [route.topic for route in config.routes.values()]
    consumer = AIOKafkaConsumer(
        *build_bus.ingress_topics(config),
        bootstrap_servers=bootstrap,
        group_id=config.bus.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", max_batch_size=256 * 1024)

    async def turn(first: int, count: int) -> float:
        events = await _fill(bus, config, first, count)
        started = time.perf_counter()
        await copy(consumer, producer, targets, events)
        return events / (time.perf_counter() - started)

    async with removed_topics(bootstrap, config), AsyncExitStack() as stack:
        stack.push_async_callback(bus.close)
        await bus.open(build_bus.topics(config))
        for client in (consumer, producer):
            stack.push_async_callback(client.stop)
            await client.start()
        yield turn


def _config(bootstrap: str) -> Config:
    name = fresh()
    return parse(_CONFIG.format(bootstrap=bootstrap, partitions=_PARTITIONS, name=name))


async def _fill(bus: Bus, config: Config, first: int, count: int) -> int:
    samples = list(sessions(first, count))
    await fill(bus, build_bus.ingress_topics(config)[0], samples)
    return len(samples)
