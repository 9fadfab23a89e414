"""The demo's HTTP hook backend: counts what it takes, until it is broken."""

from __future__ import annotations

from aiohttp import web


class PolicyBackend:
    """A real server on a free port of this machine; `taken` has the events' types in order."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/hooks", self._take)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def break_down(self) -> None:
        """From now on, connections are refused."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _take(self, request: web.Request) -> web.Response:
        message = await request.json()
        self.taken.append(message["params"]["event"]["type"])
        return web.Response(status=204)
