"""What a delivery that failed says: something about the event, or something about the route.

The two are disjoint. A *message* fault is the backend's judgement of this event, so it
is dead-lettered at once. A *route* fault would have met any other event too, so nothing may be
skipped or dead-lettered because of it before the sink's policy says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct

Reason = Literal[
    "timeout",
    "connection_failed",
    "tls_failed",
    "unauthorized",
    "not_found",
    "redirected",
    "throttled",
    "server_error",
    "unexpected_status",
    "refused",
    "too_large",
    "disk_full",
    "io_error",
    "bus_unavailable",
    "internal_error",
    "deadline_exceeded",
]

Kind = Literal["message", "route"]


class Fault(Struct, frozen=True):
    """Why a delivery failed.

    `reason` is a token of a closed list, never a text of the backend's. `retry_after` is in
    seconds, from a backend that asked for patience.
    """

    kind: Kind
    reason: Reason
    retry_after: float | None = None


DELIVERED: Final = frozenset({202, 204})
"""AHP: an observation is accepted with 202 or 204, and everything else is a failure. A 200 comes
from something that is not an AHP backend, or that answered a question which nobody asked."""

STATUSES: Final[Mapping[int, Fault]] = MappingProxyType(
    {
        400: Fault("message", "refused"),
        401: Fault("route", "unauthorized"),
        403: Fault("route", "unauthorized"),
        404: Fault("route", "not_found"),
        407: Fault("route", "unauthorized"),
        408: Fault("route", "timeout"),
        410: Fault("route", "not_found"),
        413: Fault("message", "too_large"),
        422: Fault("message", "refused"),
        425: Fault("route", "throttled"),
        429: Fault("route", "throttled"),
    }
)
"""The statuses that say more than their hundred does. 405, 406, 411, 414, 415 and 431 are missing
on purpose: method, media type, URL and headers are the same for every event, so a backend that
refuses them is misconfigured."""

HUNDREDS: Final[Mapping[int, Fault]] = MappingProxyType(
    {3: Fault("route", "redirected"), 5: Fault("route", "server_error")}
)

UNEXPECTED: Final = Fault("route", "unexpected_status")

LONGEST_WAIT: Final = 3600.0
"""Seconds; a backend that asks for more is asked again after an hour."""

_SECONDS = re.compile(r"[0-9]{1,9}")


def judge_status(status: int, retry_after: str | None = None, now: float = 0.0) -> Fault | None:
    """What an HTTP status says of a delivery; None when the event was accepted.

    `retry_after` is the value of the header of that name, `now` the time in seconds since the epoch
    that an HTTP date in it is compared with.
    """
    if status in DELIVERED:
        return None
    fault = STATUSES.get(status) or HUNDREDS.get(status // 100) or UNEXPECTED
    if fault.kind == "message" or retry_after is None:
        return fault
    return Fault(fault.kind, fault.reason, read_retry_after(retry_after, now))


def read_retry_after(value: str, now: float) -> float | None:
    """Seconds to wait, at least 0 and at most LONGEST_WAIT; None if the value is not one of the
    forms of RFC 9110, section 10.2.3."""
    text = value.strip(" \t")
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_WAIT)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:  # the asctime form names no zone, and means UTC
        date = date.replace(tzinfo=UTC)
    return min(max(date.timestamp() - now, 0.0), LONGEST_WAIT)
