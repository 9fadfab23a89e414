"""The topic sink: the backend is another topic of the same bus."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hookbus.policies.faults import Fault
from hookbus.router.errors import BusUnavailable, OutputTooLarge
from hookbus.router.sinks.contract import Delivery, out_of_time
from hookbus.router.types import Bus, Output, Record


class TopicSink:
    """Publishes each record's key, value and headers to `topic`, tombstones too; the bus is opened
    and closed by whoever owns it."""

    concurrent = False

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
                return await self._publish(records)
        except TimeoutError:
            return out_of_time(0)
        except BusUnavailable:
            return Delivery(0, Fault("route", "bus_unavailable"))

    async def close(self) -> None:
        """Nothing to do."""

    async def _publish(self, records: Sequence[Record]) -> Delivery:
        """All at once or, if one is too large, those before it: a bus that refuses a call for its
        size has sent nothing of it."""
        count = len(records)
        while True:
            try:
                await self._bus.publish([self._output(record) for record in records[:count]])
            except OutputTooLarge:
                if count == 1:
                    return Delivery(0, Fault("message", "too_large"))
                count //= 2
            else:
                return Delivery(count)

    def _output(self, record: Record) -> Output:
        return Output(self._topic, record.key, record.value, record.headers)
