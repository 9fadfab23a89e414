"""The official server as a backend: it takes what is valid, and what it refuses is seen.

The SDK's engine answers an invalid notification like a valid one, with 204; so the validator looks
at every body first, and a refusal is a 400.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any, Final

import uvicorn
from agenthooksprotocol.runtime import ProtocolError, Validator
from agenthooksprotocol.server import asgi, hooks

JSON = dict[str, Any]


class OfficialServer:
    """One official application for each path; `received` holds the events that its callback got,
    `refused` counts the bodies that were no valid notification."""

    def __init__(self) -> None:
        self.port = 0
        self.received: dict[str, list[JSON]] = {}
        self.refused = 0
        self._validator = Validator()
        self._apps: dict[str, asgi.App] = {}

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def _app(self, path: str) -> asgi.App:
        if path not in self._apps:
            receipts = self.received.setdefault(path, [])

            def receive(context: Any) -> None:
                receipts.append(context.raw["params"]["event"])

            handlers = hooks.Handlers(observe=hooks.ObserveHandlers(any=receive))
            self._apps[path] = asgi.App(handlers)
        return self._apps[path]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        try:
            self._validator.validate("observe-notification", json.loads(body))
        except (ProtocolError, ValueError):
            self.refused += 1
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return

        async def again() -> JSON:
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope["path"])(scope, again, send)


_START_SECONDS: Final = 20.0


@contextlib.contextmanager
def official_server(port: int = 0) -> Iterator[OfficialServer]:
    """The server on a port of this machine, by default a free one, in a thread."""
    application = OfficialServer()
    started = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            application.port = self.servers[0].sockets[0].getsockname()[1]
            started.set()

    server = Server(
        uvicorn.Config(
            application, host="127.0.0.1", port=port, lifespan="off", log_level="warning", ws="none"
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    if not started.wait(_START_SECONDS):
        raise RuntimeError("the official server did not start")
    try:
        yield application
    finally:
        server.should_exit = True
        thread.join(_START_SECONDS)
