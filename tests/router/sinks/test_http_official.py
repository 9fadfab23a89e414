"""The HTTP sink against the official AHP server."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from agenthooksprotocol.server.asgi import App
from agenthooksprotocol.server.hooks import Handlers, ObserveHandlers

from hookbus.policies.faults import Fault
from hookbus.router.sinks.contract import Delivery
from hookbus.router.sinks.http import HttpSink
from hookbus.router.types import Record

Records = Callable[..., list[Record]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Guarded:
    """The official application behind a bearer token, which it leaves to middleware."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.expected = "Bearer first"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if dict(scope["headers"]).get(b"authorization") == self.expected.encode():
            await self.app(scope, receive, send)
        else:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body"})


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[str]:
    """The application under uvicorn on a free port; gives its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, lifespan="off", ws="none", log_level="critical")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        await serving


def observer(seen: list[dict[str, Any]]) -> App:
    """The official application, noting the events that it found valid."""
    return App(Handlers(observe=ObserveHandlers(any=lambda context: seen.append(context.raw))))


async def test_the_official_server_takes_what_the_sink_sends(records: Records) -> None:
    """Every notification passes its validation and arrives in order, whole and once."""
    seen: list[dict[str, Any]] = []
    batch = records(50, native={"note": 'Grüße "a"\n'})
    async with running(observer(seen)) as url:
        sink = HttpSink("siem", url)
        await sink.open()
        assert await sink.deliver(batch, 20.0) == Delivery(50)
        await sink.close()
    events = [json.loads(record.value or b"") for record in batch]
    assert [message["params"]["event"] for message in seen] == events
    assert {message["method"] for message in seen} == {"hooks/observe"}


async def test_an_event_above_its_limit_is_refused_as_too_large(records: Records) -> None:
    """Its 413 blames the event, and the sink goes on with the next."""
    seen: list[dict[str, Any]] = []
    large = records(1, native="x" * (4 << 20))
    async with running(observer(seen)) as url:
        sink = HttpSink("siem", url)
        await sink.open()
        assert await sink.deliver(large, 20.0) == Delivery(0, Fault("message", "too_large"))
        assert await sink.deliver(records(1, start=1), 20.0) == Delivery(1)
        await sink.close()
    assert len(seen) == 1


async def test_a_token_that_was_rotated_works_without_a_restart(records: Records) -> None:
    """401 is a route fault until the secret is the new one (C42)."""
    seen: list[dict[str, Any]] = []
    guarded = Guarded(observer(seen))
    held = ["first"]
    async with running(guarded) as url:
        sink = HttpSink("siem", url, bearer=lambda: held[-1])
        await sink.open()
        assert await sink.deliver(records(1), 20.0) == Delivery(1)
        guarded.expected = "Bearer second"
        refused = await sink.deliver(records(1, start=1), 20.0)
        assert refused == Delivery(0, Fault("route", "unauthorized"))
        held.append("second")
        assert await sink.deliver(records(1, start=1), 20.0) == Delivery(1)
        await sink.close()
    assert [message["params"]["event"]["id"] for message in seen] == ["evt-0", "evt-1"]


async def test_several_partitions_are_delivered_at_once(records: Records) -> None:
    """Each in its own order."""
    seen: list[dict[str, Any]] = []
    async with running(observer(seen)) as url:
        sink = HttpSink("siem", url)
        await sink.open()
        batches = [records(10, start=100 * n) for n in range(5)]
        deliveries = await asyncio.gather(*(sink.deliver(batch, 20.0) for batch in batches))
        await sink.close()
    assert deliveries == [Delivery(10)] * 5
    ids = [int(message["params"]["event"]["id"].removeprefix("evt-")) for message in seen]
    for n in range(5):
        assert [i for i in ids if i // 100 == n] == list(range(100 * n, 100 * n + 10))
