"""The measurement of lag, where the bus doesn't answer."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from hookbus.router import build
from hookbus.router.configuration.config_file import parse
from hookbus.router.errors import BusFatal
from hookbus.router.telemetry.lag import Lag
from hookbus.router.telemetry.metrics import Metrics

CONFIG = parse("bus: {sqlite: {path: bus.db}}")


class Silent:
    """A reader whose bus has the connection open and says nothing."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def lag(self):
        self.asked.set()
        await asyncio.Event().wait()


class Fenced:
    """A reader whose bus refuses it for good."""

    async def lag(self):
        raise BusFatal("fenced")


def lag_of(reader):
    metrics = Metrics(CollectorRegistry(), CONFIG, build.known_types(), "0")
    return Lag(lambda: {"router": reader}, {}, metrics)


def test_a_stop_does_not_wait_for_a_bus_that_does_not_answer():
    """The question is given up at once."""

    async def play():
        stop, reader = asyncio.Event(), Silent()
        showing = asyncio.create_task(lag_of(reader).show(stop))
        await reader.asked.wait()
        stop.set()
        await showing

    asyncio.run(play())


def test_a_reader_that_is_refused_for_good_ends_the_loop_with_its_fault():
    """The service ends by it."""
    with pytest.raises(BusFatal):
        asyncio.run(lag_of(Fenced()).show(asyncio.Event()))
