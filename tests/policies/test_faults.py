"""What an HTTP status says of a delivery."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbus.policies.faults import (
    HUNDREDS,
    LONGEST_WAIT,
    STATUSES,
    UNEXPECTED,
    Fault,
    Reason,
    judge_status,
    read_retry_after,
)

MESSAGE = {400: "refused", 413: "too_large", 422: "refused"}
ROUTE = {
    401: "unauthorized",
    403: "unauthorized",
    404: "not_found",
    407: "unauthorized",
    408: "timeout",
    410: "not_found",
    425: "throttled",
    429: "throttled",
}


def expected(status: int) -> Fault | None:
    """The table of C97 as AHP narrows it, written a second time and in another way."""
    if status in (202, 204):
        return None
    if status in MESSAGE:
        return Fault("message", MESSAGE[status])  # type: ignore[arg-type]
    if status in ROUTE:
        return Fault("route", ROUTE[status])  # type: ignore[arg-type]
    if 300 <= status <= 399:
        return Fault("route", "redirected")
    if 500 <= status <= 599:
        return Fault("route", "server_error")
    return Fault("route", "unexpected_status")


@pytest.mark.parametrize("status", [*range(100, 600), 0, 99, 600, 999, -1])
def test_every_status_has_its_verdict(status: int) -> None:
    """Each status is delivered, a message fault or a route fault, exactly as the table says."""
    assert judge_status(status) == expected(status)


def test_only_three_statuses_blame_the_event() -> None:
    """A method, a media type or a URL that is refused is the same for every event."""
    blamed = {
        status
        for status in range(100, 600)
        if (fault := judge_status(status)) is not None and fault.kind == "message"
    }
    assert blamed == {400, 413, 422}


def test_the_table_uses_the_closed_list_of_reasons() -> None:
    """No status can bring a reason that metrics and hook failures don't know."""
    faults = [*STATUSES.values(), *HUNDREDS.values(), UNEXPECTED]
    assert {fault.reason for fault in faults} <= set(get_args(Reason))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7\t", 7.0),
        ("999999999", LONGEST_WAIT),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 30.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 30.0),
        ("Sun Nov  6 08:49:37 1994", 30.0),
        ("Sun, 06 Nov 1994 08:40:00 GMT", 0.0),
        ("Sun, 06 Nov 2094 08:49:37 GMT", LONGEST_WAIT),
    ],
)
def test_both_forms_of_retry_after_are_read(value: str, seconds: float) -> None:
    """Seconds and all three HTTP dates, never negative and never more than an hour."""
    now = 784111747.0  # Sun, 06 Nov 1994 08:49:07 GMT
    assert read_retry_after(value, now) == seconds


@pytest.mark.parametrize("value", ["", "-1", "1.5", "soon", "²", "9" * 5000, "Sun, 99 Nov 1994"])
def test_a_malformed_retry_after_is_no_wait(value: str) -> None:
    """What can't be read is left out; the fault stays."""
    assert read_retry_after(value, 0.0) is None
    assert judge_status(503, value) == Fault("route", "server_error")


@given(value=st.text(), now=st.floats(min_value=0, max_value=1e11))
def test_no_retry_after_breaks_the_reader(value: str, now: float) -> None:
    """Any text gives None or a bounded wait."""
    seconds = read_retry_after(value, now)
    assert seconds is None or 0.0 <= seconds <= LONGEST_WAIT


def test_a_throttling_backend_is_given_its_time() -> None:
    """The header travels with a route fault."""
    assert judge_status(429, "3") == Fault("route", "throttled", 3.0)
    assert judge_status(503, "4") == Fault("route", "server_error", 4.0)


def test_a_message_fault_has_no_wait() -> None:
    """An event that is refused is not sent again, so there is nothing to wait for."""
    assert judge_status(413, "3") == Fault("message", "too_large")
