"""An HTTP backend on the official SDK, that answers when an event is stored.

    pip install 'agenthooksprotocol[http]' uvicorn
    BACKEND_DB=events.db BACKEND_TOKEN=... uvicorn --app-dir deploy/subscribe http_backend:app

To hookbus 204 says that the event is delivered. The SDK answers a notification so whatever becomes
of it; this says 400 of what the SDK found invalid (hookbus dead-letters it) and 503 of what could
not be stored (hookbus tries again). An event that comes again is stored once.
"""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

from agenthooksprotocol.server.asgi import App
from agenthooksprotocol.server.hooks import Handlers, ObserveHandlers

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TOKEN = os.environ["BACKEND_TOKEN"].encode()
DATABASE = sqlite3.connect(os.environ["BACKEND_DB"], timeout=1.0)
DATABASE.execute(
    "CREATE TABLE IF NOT EXISTS events"
    " (source TEXT, id TEXT, event TEXT, PRIMARY KEY (source, id)) WITHOUT ROWID"
)

status: ContextVar[list[int]] = ContextVar("status")
"""What to answer to the request in hand: the last one."""


def store(context: Any) -> None:
    """Called for each valid event."""
    event = context.raw["params"]["event"]
    row = (event["source"], event["id"], json.dumps(event))
    try:
        with DATABASE:
            DATABASE.execute("INSERT OR IGNORE INTO events VALUES (?, ?, ?)", row)
    except sqlite3.Error:
        status.get().append(503)
    else:
        status.get().append(204)


sdk = App(Handlers(observe=ObserveHandlers(any=store)))


async def app(scope: Message, receive: Receive, send: Send) -> None:
    """The SDK's application behind a token, with the answer that hookbus can act on."""
    if scope["type"] != "http":
        return
    given = dict(scope["headers"]).get(b"authorization", b"")
    if not hmac.compare_digest(given, b"Bearer " + TOKEN):
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body"})
        return
    status.set([400])

    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 204:
            message = {**message, "status": status.get()[-1]}
        await send(message)

    await sdk(scope, receive, answer)
