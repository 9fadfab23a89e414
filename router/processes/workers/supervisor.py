"""Several processes as one service: the router loop in each of the workers, the sinks in one more.

The supervisor routes and delivers nothing. It starts the workers, starts those again that die,
reloads all of them or none, and answers operators for all.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import Final

from msgspec import Struct

from hookbus.policies.backoff import delays
from hookbus.router.configuration.config import Config
from hookbus.router.configuration.listen import Listen
from hookbus.router.errors import StartupError
from hookbus.router.processes.part import Part
from hookbus.router.processes.reload import Load, Loaded, Refused, Reloader
from hookbus.router.processes.service import EXIT_FATAL, EXIT_FINE, EXIT_STARTUP
from hookbus.router.processes.signals import obey
from hookbus.router.processes.workers.channel import Apply, Discard, Order, Start, Stop
from hookbus.router.processes.workers.child import Child
from hookbus.router.processes.workers.overview import Overview
from hookbus.router.processes.workers.worker import CLOSING, EXIT_REPLACE
from hookbus.router.telemetry.web import serving

_log = logging.getLogger("hookbus.supervisor")

_SINKS: Final = "sinks"
_ENDS_ALL: Final = frozenset({EXIT_STARTUP, EXIT_FATAL})
_FINE: Final = frozenset({EXIT_FINE, -signal.SIGTERM, -signal.SIGINT})
"""A signal to the whole group ends a worker that is not listening yet, with nothing in hand."""
_FIRST_WAIT: Final = 0.2
_LONGEST_WAIT: Final = 30.0
"""Seconds before a worker is started again; one that ran for longer had a good start."""


class Role(Struct, frozen=True):
    """What a worker does; `number` tells those that do the same apart."""

    part: Part
    number: int | None = None


def roles(config: Config, part: Part) -> dict[str, Role]:
    """The workers that it takes to run a part, by name."""
    router = Part(router=True, sinks=())
    found = {f"router-{number}": Role(router, number) for number in range(1, config.workers + 1)}
    if part.sinks:
        found[_SINKS] = Role(Part(router=False, sinks=part.sinks))
    return found


class Supervisor:
    """Runs `loaded`, whose part has the router. `listen` is where the operator server answers."""

    def __init__(self, loaded: Loaded, load: Load, listen: Listen | None, log_level: str) -> None:
        self._config = loaded.config
        self._roles = roles(loaded.config, loaded.part)
        self._prepared: tuple[Config, dict[str, Role]] | None = None
        self._listen = listen
        self._log_level = log_level
        self._version = version("hookbus")  # now: an upgrade of its files changes what it tells
        self._children: dict[str, Child | None] = dict.fromkeys(self._roles)
        self._keeping: dict[str, asyncio.Task[int]] = {}
        self._starting = asyncio.Lock()
        self._stop = asyncio.Event()
        self._code = EXIT_FINE
        self._overview = Overview(self._children, self._config, time.monotonic)
        self._reloader = Reloader(load, loaded, self, self._overview.own)

    async def run(self) -> int:
        """Until a signal, or the end of a worker that no other could help; returns the exit
        code."""
        obey(self._stop, force=self._force, reload=self._reloader.ask)
        try:
            async with serving(self._listen, self._overview.registry, self._overview):
                reloading = asyncio.create_task(self._reloader.run())
                self._keep_all()
                await self._stop.wait()
                reloading.cancel()
                await asyncio.wait([reloading])
                return await self._end()
        except StartupError as error:
            _log.error("can't start", extra={"why": str(error)})
            return EXIT_STARTUP

    async def prepare(self, config: Config, part: Part) -> None:
        """See `Running`: all workers can go over to it, or none will. None is started meanwhile."""
        await self._starting.acquire()
        try:
            wanted = roles(config, part)
            asked = [
                child.prepare(config, wanted[name].part)
                for name, child in self._children.items()
                if child is not None and name in wanted
            ]
            problems = [problem for found in await asyncio.gather(*asked) for problem in found]
            if problems:
                raise Refused(list(dict.fromkeys(problems)))
            self._prepared = config, wanted
        except BaseException:
            self._tell_all(Discard())
            self._starting.release()
            raise

    def apply(self) -> None:
        """See `Running`."""
        if self._prepared is None:
            raise RuntimeError("nothing is prepared")
        (self._config, self._roles), self._prepared = self._prepared, None
        for name, child in list(self._children.items()):
            if child is not None:
                child.tell(Apply() if name in self._roles else Stop())
        self._overview.show(self._config, self._roles)
        self._keep_all()
        self._starting.release()

    def _keep_all(self) -> None:
        for name in self._roles:
            if name not in self._keeping:
                self._children[name] = None
                self._keeping[name] = asyncio.create_task(self._keep(name), name=name)

    async def _keep(self, name: str) -> int:
        """Run a worker, again and again; returns the exit code of the last one."""
        waits = _waits()
        code = EXIT_FINE
        while name in self._roles and not self._stop.is_set():
            began = time.monotonic()
            code = await self._run(name)
            if name not in self._roles or self._stop.is_set():
                break
            if code in _ENDS_ALL:
                self._code = self._code or code
                self._stop.set()
                break
            if time.monotonic() - began > _LONGEST_WAIT:
                waits = _waits()
            wait = next(waits)
            _log.error(
                "a worker has ended, another one is started",
                extra={"worker": name, "ended_by": _ended_by(code), "wait": round(wait, 3)},
            )
            self._overview.restarted(name)
            await self._pause(wait)
        del self._keeping[name], self._children[name]
        return code

    async def _run(self, name: str) -> int:
        """One worker from its start to its end."""
        async with self._starting:
            role = self._roles.get(name)
            if role is None or self._stop.is_set():
                return EXIT_FINE
            order = Start(
                name, role.number, self._version, self._config, role.part, self._log_level
            )
            try:
                child = self._children[name] = await Child.start(order, time.monotonic)
            except OSError as error:
                _log.error("no process could be started", extra={"error": type(error).__name__})
                return EXIT_REPLACE
        if self._stop.is_set():
            child.tell(Stop())
        code = await child.ended()
        self._children[name] = None
        self._overview.died(child)
        return code

    async def _end(self) -> int:
        """Let every worker settle what it has, and kill those that don't end."""
        self._tell_all(Stop())
        keeping = list(self._keeping.values())
        if late := await self._late(keeping):
            _log.error(
                "killing workers that don't end; what they had in hand comes again",
                extra={"workers": [task.get_name() for task in late]},
            )
            self._kill_all()
        codes = await asyncio.gather(*keeping)
        _log.info("stopped")
        if self._code != EXIT_FINE:
            return self._code
        return EXIT_FINE if all(code in _FINE for code in codes) else EXIT_FATAL

    async def _late(self, keeping: list[asyncio.Task[int]]) -> set[asyncio.Task[int]]:
        """Those that don't end in time. None may be there: a stop can come while none runs."""
        if not keeping:
            return set()
        grace = self._config.shutdown_grace + CLOSING
        return (await asyncio.wait(keeping, timeout=grace))[1]

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    def _tell_all(self, order: Order) -> None:
        for child in self._children.values():
            if child is not None:
                child.tell(order)

    def _kill_all(self) -> None:
        for child in self._children.values():
            if child is not None:
                child.kill()

    def _force(self) -> None:
        self._kill_all()
        os._exit(EXIT_FATAL)


async def run_workers(loaded: Loaded, load: Load, listen: Listen | None, log_level: str) -> int:
    """See `Supervisor.run`."""
    return await Supervisor(loaded, load, listen, log_level).run()


def _waits() -> Iterator[float]:
    return delays(_FIRST_WAIT, _LONGEST_WAIT, random.random)


def _ended_by(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
