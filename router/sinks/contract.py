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
    the attempt at the next one, and None exactly if all were delivered. A fault that is a timeout
    after some were delivered says only that the time was short for so many.
    """

    delivered: int
    fault: Fault | None = None


class Sink(Protocol):
    """Delivers records to one backend. One task calls it at a time, except where it says more."""

    async def open(self) -> None:
        """Get ready. A backend that is away is no error; a sink that can't work as it is configured
        raises StartupError."""
        ...

    async def deliver(self, records: Sequence[Record], timeout: float) -> Delivery:  # noqa: ASYNC109 - part of the outcome, not an exception
        """Deliver in order within `timeout` seconds in all, and stop at the first fault.

        Nothing that a backend does is raised. Tombstones have nothing to deliver and count as
        delivered. A record may be delivered again after a fault or a cancellation; a record that
        was reported as delivered never is.
        """
        ...

    async def close(self) -> None:
        """Release what is held. Delivers nothing."""
        ...
