"""The whole service in one process: its part, the operator server, signals and reload."""

from __future__ import annotations

import asyncio
import logging
import os

from hookbus.router.configuration.listen import Listen
from hookbus.router.errors import StartupError
from hookbus.router.processes.reload import Load, Loaded, Reloader
from hookbus.router.processes.service import EXIT_FATAL, EXIT_STARTUP, Service
from hookbus.router.processes.signals import obey
from hookbus.router.telemetry.web import serving

_log = logging.getLogger("hookbus.service")


async def run_alone(loaded: Loaded, load: Load, listen: Listen | None) -> int:
    """Until a signal or a fault; returns the exit code. `listen` is where the operator server
    answers, if there is one."""
    stop = asyncio.Event()
    service = Service(loaded.config, loaded.part)
    reloader = Reloader(load, loaded, service, service.registry)
    obey(stop, force=lambda: os._exit(EXIT_FATAL), reload=reloader.ask)
    try:
        async with serving(listen, service.registry, service.health):
            reloading = asyncio.create_task(reloader.run())
            try:
                return await service.run(stop)
            finally:
                reloading.cancel()
                await asyncio.wait([reloading])
    except StartupError as error:
        _log.error("can't start", extra={"why": str(error)})
        return EXIT_STARTUP
