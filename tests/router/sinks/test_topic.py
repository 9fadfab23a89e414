"""The topic sink."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from hookbus.policies.faults import Fault
from hookbus.router.errors import BusFatal, BusUnavailable, OutputTooLarge
from hookbus.router.sinks.contract import Delivery
from hookbus.router.sinks.topic import TopicSink
from hookbus.router.types import Output, Reader, Record

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


class NarrowBus(ListBus):
    """A bus that takes no value of more than 50 bytes."""

    async def publish(self, outputs: Sequence[Output]) -> None:
        if any(len(output.value or b"") > 50 for output in outputs):
            raise OutputTooLarge
        await super().publish(outputs)


class StuckBus(ListBus):
    """A bus that never answers."""

    async def publish(self, outputs: Sequence[Output]) -> None:
        await asyncio.Event().wait()


async def test_records_are_copied_with_key_and_headers(
    make_record: Callable[..., Record],
) -> None:
    """What the route wrote is what the other topic gets, in order, tombstones too."""
    bus = ListBus()
    headers = (("ce_id", b"1"),)
    batch = [make_record(0, b"{}", headers), make_record(1, None), make_record(2, b"[]")]
    assert await TopicSink(bus, "copy").deliver(batch, 1.0) == Delivery(3)
    assert bus.published == [
        Output("copy", b"urn:example:agent:1", b"{}", headers),
        Output("copy", b"urn:example:agent:1", None),
        Output("copy", b"urn:example:agent:1", b"[]"),
    ]


async def test_a_record_that_the_bus_refuses_for_its_size_is_a_message_fault(
    make_record: Callable[..., Record],
) -> None:
    """The records before it go through, attempt by attempt, and then it alone is blamed."""
    bus = NarrowBus()
    sink = TopicSink(bus, "copy")
    batch = [make_record(n, b"{}") for n in range(5)] + [make_record(5, b'"' + b"x" * 100 + b'"')]
    while (delivery := await sink.deliver(batch, 1.0)).fault is None:
        assert delivery.delivered > 0
        batch = batch[delivery.delivered :]
    assert delivery == Delivery(0, Fault("message", "too_large"))
    assert [record.offset for record in batch] == [5]
    assert len(bus.published) == 5


async def test_a_bus_that_is_away_is_a_route_fault(records: Records) -> None:
    """Nothing counts as delivered, because nothing says how far the bus came."""
    sink = TopicSink(ListBus(BusUnavailable()), "copy")
    assert await sink.deliver(records(2), 1.0) == Delivery(0, Fault("route", "bus_unavailable"))


async def test_a_bus_that_hangs_is_a_timeout(records: Records) -> None:
    """The attempt ends when its time does."""
    sink = TopicSink(StuckBus(), "copy")
    assert await sink.deliver(records(1), 0.01) == Delivery(0, Fault("route", "timeout"))


async def test_a_fatal_bus_is_no_backends_behaviour(records: Records) -> None:
    """It ends the process, so it is not made into a fault."""
    with pytest.raises(BusFatal):
        await TopicSink(ListBus(BusFatal()), "copy").deliver(records(1), 1.0)
