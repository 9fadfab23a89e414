"""Run the service until a signal.

SIGTERM and SIGINT stop it in order: what is in hand is settled within `shutdown_grace`; a second
signal stops it at once.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os

import msgspec

from hookbus.router import logs
from hookbus.router.commands.common import add_config
from hookbus.router.commands.registered import add_registration, load_registered
from hookbus.router.config import Config
from hookbus.router.errors import ConfigError
from hookbus.router.service import Part, Service

_log = logging.getLogger("hookbus.registration")


def arguments(command: argparse.ArgumentParser) -> None:
    add_config(command)
    add_registration(command)
    command.add_argument(
        "--only", action="append", default=[], metavar="PART",
        help="run just this part, `router` or `sink:NAME`; may be given several times",
    )  # fmt: skip
    command.add_argument(
        "--listen", metavar="HOST:PORT", help="instead of the configuration's metrics.listen"
    )
    command.add_argument(
        "--log-level", choices=["debug", "info", "warning", "error"], default="info"
    )


def execute(options: argparse.Namespace) -> int:
    loaded = load_registered(
        options, lambda sink: os.environ if _runs(options.only, sink) else None
    )
    config = loaded.config
    part = _part(config, options.only)
    logs.configure(options.log_level)
    for note in loaded.notes:
        _log.warning("registration", extra=msgspec.structs.asdict(note))
    gc.freeze()  # what is loaded by now stays; later collections need not look at it
    return asyncio.run(_run(config, part, options.listen))


async def _run(config: Config, part: Part, listen: str | None) -> int:
    return await Service(config, part, listen).run()


def _runs(only: list[str], sink: str) -> bool:
    return not only or f"sink:{sink}" in only


def _part(config: Config, only: list[str]) -> Part:
    if not only and not config.routes and not config.sinks:
        raise ConfigError(["routes, sinks: there is nothing to run"])
    if not only:
        return Part(router=bool(config.routes), sinks=tuple(config.sinks))
    sinks = [name.removeprefix("sink:") for name in only if name != "router"]
    unknown = [f"--only {name}: there is no such part" for name in only if not _is(config, name)]
    if unknown:
        raise ConfigError(unknown)
    return Part(router="router" in only, sinks=tuple(sinks))


def _is(config: Config, name: str) -> bool:
    if name == "router":
        return bool(config.routes)
    kind, _, sink = name.partition(":")
    return kind == "sink" and sink in config.sinks
