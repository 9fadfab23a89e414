"""The topic sink."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import cast

import pytest

from hookbus.policies.faults import Fault
from hookbus.router.errors import BusFatal, BusUnavailable
from hookbus.router.sinks.contract import Delivery
from hookbus.router.sinks.topic import TopicSink
from hookbus.router.types import Bus, Output, Reader, Record

Records = Callable[..., list[Record]]


class ListBus:
    """A bus that keeps what is published, or fails as it is told."""

    def __init__(self, error: Exception | None = None) -> None:
        self.published: list[Output] = []
        self.error = error

    async def open(self, topics: Sequence[str]) -> None: ...

    async def reader(self, group: str, topics: Sequence[str]) -> Reader:
        raise NotImplementedError

    async def publish(self, outputs: Sequence[Output]) -> None:
        if self.error is not None:
            raise self.error
        self.published.extend(outputs)

    def scan(self, topic: str, *, follow: bool) -> AsyncIterator[Record]:
        raise NotImplementedError

    async def close(self) -> None: ...


class StuckBus(ListBus):
    """A bus that never answers."""

    async def publish(self, outputs: Sequence[Output]) -> None:
        await asyncio.Event().wait()


async def test_records_are_copied_with_key_and_headers(
    make_record: Callable[..., Record],
) -> None:
    """What the route wrote is what the other topic gets, in order and without tombstones."""
    bus = ListBus()
    headers = (("ce_id", b"1"),)
    batch = [make_record(0, b"{}", headers), make_record(1, None), make_record(2, b"[]")]
    assert await TopicSink(bus, "copy").deliver(batch, 1.0) == Delivery(3)
    assert bus.published == [
        Output("copy", b"urn:example:agent:1", b"{}", headers),
        Output("copy", b"urn:example:agent:1", b"[]"),
    ]


async def test_a_bus_that_is_away_is_a_route_fault(records: Records) -> None:
    """Nothing counts as delivered, because nothing says how far the bus came."""
    sink = TopicSink(ListBus(BusUnavailable()), "copy")
    assert await sink.deliver(records(2), 1.0) == Delivery(0, Fault("route", "bus_unavailable"))


async def test_a_bus_that_hangs_is_a_timeout(records: Records) -> None:
    """The attempt ends when its time does."""
    sink = TopicSink(cast(Bus, StuckBus()), "copy")
    assert await sink.deliver(records(1), 0.01) == Delivery(0, Fault("route", "timeout"))


async def test_a_fatal_bus_is_no_backends_behaviour(records: Records) -> None:
    """It ends the process, so it is not made into a fault."""
    with pytest.raises(BusFatal):
        await TopicSink(ListBus(BusFatal()), "copy").deliver(records(1), 1.0)
