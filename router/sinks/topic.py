"""The topic sink: the backend is another topic of the same bus."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hookbus.policies.faults import Fault
from hookbus.router.errors import BusUnavailable
from hookbus.router.sinks.contract import Delivery
from hookbus.router.types import Bus, Output, Record


class TopicSink:
    """Publishes each record's key, value and headers to `topic`; the bus is opened and closed by
    whoever owns it."""

    def __init__(self, bus: Bus, topic: str) -> None:
        self._bus = bus
        self._topic = topic

    async def open(self) -> None:
        """Nothing to do."""

    async def deliver(self, records: Sequence[Record], timeout: float) -> Delivery:  # noqa: ASYNC109
        """See Sink. A bus that says it can't go on (BusFatal) is not a backend's behaviour and is
        raised."""
        try:
            async with asyncio.timeout(timeout):
                await self._bus.publish([*map(self._output, filter(_has_value, records))])
        except TimeoutError:
            return Delivery(0, Fault("route", "timeout"))
        except BusUnavailable:
            return Delivery(0, Fault("route", "bus_unavailable"))
        return Delivery(len(records))

    async def close(self) -> None:
        """Nothing to do."""

    def _output(self, record: Record) -> Output:
        return Output(self._topic, record.key, record.value or b"", record.headers)


def _has_value(record: Record) -> bool:
    return record.value is not None
