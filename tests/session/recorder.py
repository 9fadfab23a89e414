"""A hook backend that keeps every message exactly as it came over the wire."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from tests.session import script


class Recorder:
    """`messages` holds the bodies in the order of their arrival."""

    def __init__(self) -> None:
        self.url = ""
        self.messages: list[bytes] = []

    async def receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.messages.append(body)
        asked = json.loads(body)
        if asked["method"] == "hooks/observe":
            return web.Response(status=204)
        result = {"protocolVersion": "draft", "effects": _effects(asked["params"]["event"])}
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": result})


def _effects(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The policy of this backend: nobody writes to production."""
    if event["type"] != "tool.permission.request":
        return []
    command = event["tool"]["input"].get("command", "")
    return [{"type": "deny", "reason": script.DENIAL}] if "db.prod" in command else []


@contextlib.asynccontextmanager
async def recording() -> AsyncIterator[Recorder]:
    """A recorder that listens on a free port of this machine."""
    recorder = Recorder()
    app = web.Application()
    app.router.add_post("/hooks", recorder.receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        recorder.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hooks"
        yield recorder
    finally:
        await runner.cleanup()
