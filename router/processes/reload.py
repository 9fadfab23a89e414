"""Reload: the configuration is read again, and the service goes over to it or refuses it whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Protocol, get_args

import msgspec
from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge

from hookbus.router.configuration import referred
from hookbus.router.configuration.changes import compare
from hookbus.router.configuration.config import Config
from hookbus.router.configuration.registration import Note
from hookbus.router.errors import ConfigError, HookbusError
from hookbus.router.processes.part import Part, choose
from hookbus.router.telemetry.logs import where

_log = logging.getLogger("hookbus.reload")
_documents = logging.getLogger("hookbus.registration")

_PATIENCE: Final = 60.0
"""Seconds that the preparation may take, with topics to create and a bus that is away."""

Result = Literal["applied", "refused", "unchanged"]


class Loaded(Struct, frozen=True):
    """A configuration without problems, what this process runs of it, and what is to be told of
    its registration documents."""

    config: Config
    part: Part
    notes: tuple[Note, ...] = ()


Load = Callable[[], Loaded]
"""Reads all files again. Raises ConfigError with every problem."""


class Running(Protocol):
    """What goes over to another configuration."""

    async def prepare(self, config: Config, part: Part) -> None:
        """Do whatever may fail. Raises HookbusError; then nothing has changed."""
        ...

    def apply(self) -> None:
        """Go over to what was prepared."""
        ...


class Refused(HookbusError):  # noqa: N818 - reads as what happened
    """The running configuration stays; one line a reason."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


class Reloader:
    """Reloads `running`, which was started with `loaded`."""

    def __init__(
        self, load: Load, loaded: Loaded, running: Running, registry: CollectorRegistry
    ) -> None:
        self._load = load
        self._config = loaded.config
        self._contents: Mapping[str, str] = referred.contents(loaded.config)
        self._running = running
        self._metrics = ReloadMetrics(registry)
        self._metrics.show(loaded.config)
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Reload as soon as the reload that goes on, if one does, is over."""
        self._asked.set()

    async def run(self) -> None:
        """Without end; meant to be cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            self._metrics.reloaded(await self._reload())

    async def _reload(self) -> Result:
        try:
            changed = await self._go_over()
        except Refused as refused:
            reasons = refused.reasons
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the service
            reasons = (f"a fault in hookbus: {type(error).__name__} at {where(error)}",)
        else:
            return self._done(changed)
        _log.error("configuration refused, the running one stays", extra={"why": reasons})
        return "refused"

    def _done(self, changed: list[str]) -> Result:
        if not changed:
            _log.info("configuration unchanged")
            return "unchanged"
        _log.info("configuration applied", extra={"changed": changed})
        return "applied"

    async def _go_over(self) -> list[str]:
        """What has changed. Raises Refused."""
        try:
            loaded = await asyncio.to_thread(self._load)
            contents = await asyncio.to_thread(referred.contents, loaded.config)
        except ConfigError as error:
            raise Refused(error.problems) from error
        changes = compare(self._config, loaded.config)
        if changes.refused:
            raise Refused(changes.refused)
        changed = [*changes.paths, *referred.differences(self._contents, contents)]
        if changed:
            await self._prepare(loaded)
            self._running.apply()
            self._config, self._contents = loaded.config, contents
            self._metrics.show(loaded.config)
            tell(loaded.notes)
        return changed

    async def _prepare(self, loaded: Loaded) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._running.prepare(loaded.config, loaded.part)
        except TimeoutError as error:
            raise Refused([f"not ready for it within {_PATIENCE:g} s"]) from error
        except Refused:
            raise
        except HookbusError as error:
            raise Refused(str(error).splitlines()) from error


class ReloadMetrics:
    """Whether reloads succeed, and what the running configuration asks somebody to run."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reloads = Counter(
            "hookbus_config_reloads", "Reloads of the configuration, by result", ["result"],
            registry=registry,
        )  # fmt: skip
        self._successful = Gauge(
            "hookbus_config_last_reload_successful",
            "0 if the last reload was refused, and the service runs under an older configuration "
            "than its file has",
            registry=registry,
        )
        self._loops = Gauge(
            "hookbus_config_loop",
            "1 for each loop that the configuration has, whichever process runs it", ["loop"],
            registry=registry,
        )  # fmt: skip
        for result in get_args(Result):
            self._reloads.labels(result)
        self._successful.set(1)

    def show(self, config: Config) -> None:
        """Show the loops of this configuration, and no others."""
        self._loops.clear()
        for loop in choose(config, ()).loops:
            self._loops.labels(loop).set(1)

    def reloaded(self, result: Result) -> None:
        self._reloads.labels(result).inc()
        self._successful.set(result != "refused")


def tell(notes: Sequence[Note]) -> None:
    """Log what an operator should know of the registration documents."""
    for note in notes:
        _documents.warning("registration", extra=msgspec.structs.asdict(note))
