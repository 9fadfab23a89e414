"""The HTTP server for operators: /metrics, /healthz and /readyz."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Protocol

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from hookbus.router.configuration.listen import Listen
from hookbus.router.errors import StartupError

_log = logging.getLogger("hookbus.web")


class Answers(Protocol):
    """What /healthz and /readyz say: reasons, none if all is well."""

    def unhealthy(self) -> list[str]: ...

    def unready(self) -> list[str]: ...


@contextlib.asynccontextmanager
async def serving(
    listen: Listen | None, registry: CollectorRegistry, health: Answers
) -> AsyncIterator[None]:
    """Answer meanwhile, if there is an address to answer on. Raises StartupError."""
    server = OperatorServer(listen, registry, health) if listen is not None else None
    if server is not None:
        await server.start()
    try:
        yield
    finally:
        if server is not None:
            await server.stop()


class OperatorServer:
    """Answers on `listen`; port 0 takes a free one, which `address` has then."""

    def __init__(self, listen: Listen, registry: CollectorRegistry, health: Answers) -> None:
        self._registry = registry
        self._health = health
        self._runner: web.AppRunner | None = None
        self.address = listen

    async def start(self) -> None:
        """Raises StartupError if the address can't be had."""
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.address.host, self.address.port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise StartupError(
                f"metrics.listen {self.address}: {error.strerror or 'not available'}"
            ) from error
        self.address = self.address._replace(port=self._runner.addresses[0][1])
        _log.info("metrics served", extra={"address": str(self.address)})

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _healthz(self, request: web.Request) -> web.Response:
        return _answer(self._health.unhealthy())

    async def _readyz(self, request: web.Request) -> web.Response:
        return _answer(self._health.unready())


def _answer(reasons: list[str]) -> web.Response:
    return web.Response(text="\n".join(reasons or ["ok"]) + "\n", status=503 if reasons else 200)
