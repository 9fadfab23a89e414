"""What every sink promises to the loop that feeds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from hookbus.policies.faults import Fault
from hookbus.router.types import Record


class Delivery(Struct, frozen=True):
    """What came of one attempt.

    The first `delivered` records of the list are durable at the backend. `fault` is what stopped
    the attempt at the next one. Without a fault all were delivered, or some, at least one, and the
    attempt ended there: nothing is wrong, and the rest is for the next attempt.
    """

    delivered: int
    fault: Fault | None = None


def out_of_time(delivered: int) -> Delivery:
    """The time is up. That is a fault only if the record had all of it."""
    return Delivery(delivered, None if delivered else Fault("route", "timeout"))


class Sink(Protocol):
    """Delivers records to one backend."""

    @property
    def concurrent(self) -> bool:
        """Whether several tasks may deliver at once, each the records of other partitions."""
        ...

    async def open(self) -> None:
        """Get ready. A backend that is away is no error; a sink that can't work as it is configured
        raises StartupError."""
        ...

    async def deliver(self, records: Sequence[Record], timeout: float) -> Delivery:  # noqa: ASYNC109 - part of the outcome, not an exception
        """Deliver in order, within `timeout` seconds for all of them, and stop at the first fault.

        Nothing that a backend does is raised. Tombstones have nothing to deliver and count as
        delivered. A record may be delivered again after a fault or a cancellation; a record that
        was reported as delivered never is.
        """
        ...

    async def close(self) -> None:
        """Release what is held. Delivers nothing."""
        ...
