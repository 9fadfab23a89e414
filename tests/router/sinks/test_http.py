"""The HTTP sink: what it sends, and what it makes of the answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.codecs.headers import Attributes, write_headers
from hookbus.policies.faults import Fault, judge_status
from hookbus.router.errors import ConfigError, StartupError
from hookbus.router.sinks.contract import Delivery
from hookbus.router.sinks.http import HttpSink
from hookbus.router.types import Record
from tests.router.sinks.attempts import AMPLE

Records = Callable[..., list[Record]]
Backend: TypeAlias = Any  # the class in conftest.py, which nothing can import
Serve = Callable[..., AbstractAsyncContextManager[Backend]]
Eventually = Callable[[Callable[[], bool]], Awaitable[None]]
MakeRecord = Callable[..., Record]

ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


def status_line(status: int, *headers: str) -> bytes:
    """An answer without a body."""
    return "\r\n".join([f"HTTP/1.1 {status} Any", "Content-Length: 0", *headers, "", ""]).encode()


async def attempt(sink: HttpSink, records: list[Record], timeout: float = AMPLE) -> Delivery:  # noqa: ASYNC109 - passed on
    """One delivery by a sink that is opened and closed for it."""
    await sink.open()
    try:
        return await sink.deliver(records, timeout)
    finally:
        await sink.close()


async def test_a_backend_is_told_the_trace_of_each_event(
    serve: Serve, make_record: MakeRecord, records: Records
) -> None:
    """In the standard request headers, where the record has a valid one, and nothing else of it."""
    value = records(1)[0].value
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    batch = [
        make_record(1, value, (("traceparent", parent.encode()), ("tracestate", b"a=1"))),
        make_record(2, value, (("traceparent", parent.encode() + b"\r\nX-Admin: 1"),)),
        make_record(3, value, (("tracestate", b"a=1"),)),
    ]
    async with serve(ACCEPTED, keep=True) as backend:
        assert await attempt(HttpSink("siem", backend.url), batch) == Delivery(3)
    told = [
        {name: request.headers.get(name) for name in ("traceparent", "tracestate", "x-admin")}
        for request in backend.requests
    ]
    nothing = {"traceparent": None, "tracestate": None, "x-admin": None}
    assert told == [{**nothing, "traceparent": parent, "tracestate": "a=1"}, nothing, nothing]


@pytest.mark.parametrize("answer", [ACCEPTED, NO_CONTENT])
async def test_one_notification_is_posted_for_each_record(
    serve: Serve, records: Records, answer: bytes
) -> None:
    """In order, over one connection, each with its event as the route wrote it."""
    batch = records(5)
    async with serve(answer, keep=True) as backend:
        assert await attempt(HttpSink("siem", backend.url), batch) == Delivery(5)
    assert [request.line for request in backend.requests] == ["POST /hooks HTTP/1.1"] * 5
    assert [json.loads(request.body)["params"]["event"] for request in backend.requests] == [
        json.loads(record.value or b"") for record in batch
    ]
    assert {request.headers["content-type"] for request in backend.requests} == {"application/json"}
    assert {request.headers["accept-encoding"] for request in backend.requests} == {"identity"}
    assert backend.connections == 1


async def test_a_tombstone_is_not_sent(
    serve: Serve, records: Records, make_record: MakeRecord
) -> None:
    """There is no event in it."""
    async with serve(NO_CONTENT, keep=True) as backend:
        batch = [make_record(0, None), *records(1, start=1), make_record(2, None)]
        assert await attempt(HttpSink("siem", backend.url), batch) == Delivery(3)
    assert len(backend.requests) == 1


async def test_a_large_event_is_sent_whole(serve: Serve, records: Records) -> None:
    """Three mebibytes, with their length."""
    batch = records(1, native="x" * 3_000_000)
    async with serve(NO_CONTENT) as backend:
        assert await attempt(HttpSink("siem", backend.url), batch) == Delivery(1)
    assert len(backend.requests[0].body) > 3_000_000
    assert "transfer-encoding" not in backend.requests[0].headers


@pytest.mark.parametrize(
    "status",
    [
        *(200, 201, 202, 204, 206, 300, 301, 302, 303, 304, 307, 308),
        *(400, 401, 402, 403, 404, 405, 407, 408, 409, 410, 413, 415, 418, 422, 425, 429, 431),
        *(500, 501, 502, 503, 504, 511, 599, 600, 999),
    ],
)
async def test_the_status_decides(serve: Serve, records: Records, status: int) -> None:
    """By the table, and a redirect is not followed (C97)."""
    async with serve(NO_CONTENT) as elsewhere:
        answer = status_line(status, f"Location: {elsewhere.url}")
        async with serve(answer) as backend:
            delivery = await attempt(HttpSink("siem", backend.url), records(1))
    fault = judge_status(status)
    assert delivery == Delivery(0 if fault else 1, fault)
    assert len(backend.requests) == 1
    assert elsewhere.connections == 0


async def test_a_backend_can_ask_for_patience(serve: Serve, records: Records) -> None:
    """Retry-After comes back with the fault."""
    async with serve(status_line(429, "Retry-After: 7")) as backend:
        delivery = await attempt(HttpSink("siem", backend.url), records(1))
    assert delivery == Delivery(0, Fault("route", "throttled", 7.0))


async def test_the_first_fault_stops_the_attempt(serve: Serve, records: Records) -> None:
    """What went through before is told, and nothing after it is sent (C42)."""

    async def answer(backend: Backend, writer: asyncio.StreamWriter) -> None:
        writer.write(status_line(401) if len(backend.requests) == 3 else NO_CONTENT)

    async with serve(answer, keep=True) as backend:
        delivery = await attempt(HttpSink("siem", backend.url), records(5))
    assert delivery == Delivery(2, Fault("route", "unauthorized"))
    assert len(backend.requests) == 3


async def test_time_that_was_short_is_not_the_records_fault(serve: Serve, records: Records) -> None:
    """An attempt that ends after some progress has no fault; the record that then has all of the
    time and still gets no answer has."""

    async def answer(backend: Backend, writer: asyncio.StreamWriter) -> None:
        if len(backend.requests) == 1:
            writer.write(NO_CONTENT)
        else:
            await asyncio.Event().wait()

    async with serve(answer, keep=True) as backend:
        sink = HttpSink("siem", backend.url)
        await sink.open()
        batch = records(3)
        assert await sink.deliver(batch, 3.0) == Delivery(1)
        assert await sink.deliver(batch[1:], 0.1) == Delivery(0, Fault("route", "timeout"))
        await sink.close()


async def test_identifiers_do_not_reach_the_request_head(
    serve: Serve, records: Records, make_record: MakeRecord
) -> None:
    """Whatever a producer chose, the head is ours alone (C99)."""
    hostile = [("evt-1\r\nX-Admin: 1", "urn:example:agent:1"), ("evt-1", "urn:example:a\n")]
    batch = [
        make_record(
            n,
            records(1, id=event_id, source=source)[0].value,
            write_headers(Attributes(id=event_id, source=source, type="t", capture="full")),
        )
        for n, (event_id, source) in enumerate(hostile)
    ]
    async with serve(NO_CONTENT, keep=True) as backend:
        assert await attempt(HttpSink("siem", backend.url), batch) == Delivery(2)
    for request, (event_id, source) in zip(backend.requests, hostile, strict=True):
        sent = json.loads(request.body)["params"]["event"]
        assert (sent["id"], sent["source"]) == (event_id, source)
        assert "x-admin" not in request.headers
        assert b"evt-1" not in request.head
        assert b"urn:" not in request.head
        assert re.fullmatch("[0-9a-f]{64}", request.headers["idempotency-key"])


async def test_a_retry_has_the_same_idempotency_key(serve: Serve, records: Records) -> None:
    """And exactly the same body, so that a backend can drop it unread."""
    async with serve(status_line(503), keep=True) as backend:
        sink = HttpSink("siem", backend.url)
        await sink.open()
        for _ in range(2):
            await sink.deliver(records(1), AMPLE)
        await sink.close()
    first, second = backend.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


async def test_a_rotated_token_is_taken_up(serve: Serve, records: Records, tmp_path: Path) -> None:
    """It is read for every request, and only then."""
    tokens = iter(["one", "two"])
    async with serve(NO_CONTENT, keep=True) as backend:
        sink = HttpSink("siem", backend.url, bearer=lambda: next(tokens))
        assert await attempt(sink, records(2)) == Delivery(2)
    assert [request.headers["authorization"] for request in backend.requests] == [
        "Bearer one",
        "Bearer two",
    ]


def missing_file() -> str:
    """A secret whose file is gone."""
    return Path("/nonexistent/token").read_text()


def missing_variable() -> str:
    """A secret whose variable is not set."""
    raise KeyError("SIEM_TOKEN")


@pytest.mark.parametrize(
    "bearer",
    [missing_file, missing_variable, lambda: "", lambda: "a\r\nX-Admin: 1", lambda: "ä"],
)
async def test_a_token_that_cannot_be_used_sends_nothing(
    serve: Serve,
    records: Records,
    bearer: Callable[[], str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There is no unauthenticated fallback; the log says why, without the token."""
    async with serve(NO_CONTENT) as backend:
        delivery = await attempt(HttpSink("siem", backend.url, bearer=bearer), records(1))
    assert delivery == Delivery(0, Fault("route", "unauthorized"))
    assert backend.connections == 0
    assert "bearer token" in caplog.text
    assert "X-Admin" not in caplog.text


async def test_configured_headers_are_sent(serve: Serve, records: Records) -> None:
    """As they are written."""
    async with serve(NO_CONTENT) as backend:
        headers = {"X-Tenant": "a b", "user-agent": "other"}
        await attempt(HttpSink("siem", backend.url, headers=headers), records(1))
    head = backend.requests[0].head.lower()
    assert b"\r\nx-tenant: a b\r\n" in head
    assert b"\r\nuser-agent: other\r\n" in head
    for name in (b"user-agent", b"content-type", b"accept-encoding", b"host", b"content-length"):
        assert head.count(b"\r\n" + name + b":") == 1


def test_a_wrong_configuration_is_told_whole() -> None:
    """Every problem, with its path and without a value."""
    with pytest.raises(ConfigError) as told:
        HttpSink("siem", "http://u:hush@siem.example", headers={"A\n": "1", "Host": "hush"})
    assert len(told.value.problems) == 3
    assert all(problem.startswith("sinks.siem.http.") for problem in told.value.problems)
    assert "hush" not in str(told.value)


async def test_cookies_are_not_kept(serve: Serve, records: Records) -> None:
    """A backend can't mark us."""
    answer = b"HTTP/1.1 204 No Content\r\nSet-Cookie: id=1; Path=/\r\n\r\n"
    async with serve(answer, keep=True) as backend:
        assert await attempt(HttpSink("siem", backend.url), records(2)) == Delivery(2)
    assert all("cookie" not in request.headers for request in backend.requests)


async def test_proxy_settings_of_the_environment_are_not_ours(
    serve: Serve, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events go where the configuration says."""
    async with serve(NO_CONTENT) as backend, serve(NO_CONTENT) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert await attempt(HttpSink("siem", backend.url), records(1)) == Delivery(1)
    assert proxy.connections == 0


async def test_a_refused_connection_is_a_route_fault(serve: Serve, records: Records) -> None:
    """A backend that is away is no error at the start either."""
    async with serve(NO_CONTENT) as backend:
        pass
    delivery = await attempt(HttpSink("siem", backend.url), records(1))
    assert delivery == Delivery(0, Fault("route", "connection_failed"))


async def test_a_backend_that_comes_back_is_used_again(serve: Serve, records: Records) -> None:
    """Its closed connection is not kept."""
    async with serve(NO_CONTENT) as backend:
        sink = HttpSink("siem", backend.url)
        await sink.open()
        for _ in range(3):
            assert await sink.deliver(records(1), AMPLE) == Delivery(1)
        await sink.close()
    assert backend.connections == 3


async def test_a_name_goes_to_the_address_that_was_checked(serve: Serve, records: Records) -> None:
    """One lookup a connection, the original name in the Host header."""
    lookups = iter([["127.0.0.1"]])

    async def lookup(host: str, port: int) -> list[str]:
        return next(lookups)

    async with serve(NO_CONTENT, keep=True) as backend:
        url = f"http://backend.example:{backend.port}/hooks"
        sink = HttpSink("siem", url, allow_plain_http=True, allow_private=True, lookup=lookup)
        assert await attempt(sink, records(2)) == Delivery(2)
    assert backend.requests[0].headers["host"] == f"backend.example:{backend.port}"


async def test_a_name_with_a_private_address_is_not_connected_to(
    serve: Serve, records: Records, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the host, and neither the address nor the query."""

    async def lookup(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with serve(NO_CONTENT) as backend:
        url = f"http://backend.example:{backend.port}/hooks?key=hush"
        sink = HttpSink("siem", url, allow_plain_http=True, lookup=lookup)
        delivery = await attempt(sink, records(1))
    assert delivery == Delivery(0, Fault("route", "connection_failed"))
    assert backend.connections == 0
    assert "backend.example" in caplog.text
    assert "hush" not in caplog.text


async def test_a_lookup_that_hangs_is_a_timeout(records: Records) -> None:
    """Name resolution is inside the deadline, and one lookup hangs however many attempts wait."""
    lookups = []

    async def lookup(host: str, port: int) -> list[str]:
        lookups.append(host)
        await asyncio.Event().wait()
        raise AssertionError

    sink = HttpSink("siem", "https://backend.example/", lookup=lookup)
    await sink.open()
    for _ in range(3):
        assert await sink.deliver(records(1), 0.05) == Delivery(0, Fault("route", "timeout"))
    await sink.close()
    assert len(lookups) == 1


async def test_a_cancelled_delivery_hangs_up(
    serve: Serve, records: Records, eventually: Eventually
) -> None:
    """At once, and the backend sees it."""

    async def stall(_: Backend, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Le")
        await writer.drain()
        while not writer.transport.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0.001)

    async with serve(stall) as backend:
        sink = HttpSink("siem", backend.url)
        await sink.open()
        task = asyncio.create_task(sink.deliver(records(1), 60.0))
        await eventually(lambda: len(backend.requests) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: backend.closed == 1)
        await sink.close()


async def test_certificate_files_that_cannot_be_read_stop_the_start(tmp_path: Path) -> None:
    """Missing, or not a certificate."""
    (tmp_path / "empty.pem").touch()
    for name in ("missing.pem", "empty.pem"):
        sink = HttpSink("siem", "https://siem.example/", ca_file=str(tmp_path / name))
        with pytest.raises(StartupError, match=r"sinks\.siem\.http"):
            await sink.open()
        await sink.close()


@settings(deadline=None, max_examples=150)
@given(
    answer=st.binary(max_size=300)
    | st.binary(max_size=300).map(b"HTTP/1.1 202 OK\r\n".__add__)
    | st.binary(max_size=300).map(b"HTTP/1.1 202 OK\r\nContent-Length: 5\r\n\r\n".__add__)
    | st.binary(max_size=300).map(b"HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\n".__add__)
)
def test_no_answer_breaks_the_sink(serve: Serve, records: Records, answer: bytes) -> None:
    """Random bytes, with and without a good beginning, give a delivery or a fault."""

    async def run() -> None:
        async with serve(answer) as backend:
            delivery = await attempt(HttpSink("siem", backend.url), records(1))
            assert (delivery.fault is None) == (delivery.delivered == 1)
            assert delivery.fault is None or delivery.fault.kind == "route"

    asyncio.run(run())
