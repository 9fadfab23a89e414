"""Run the service until a signal.

SIGTERM and SIGINT stop it in order: what is in hand is settled within `shutdown_grace`; a second
signal stops it at once. SIGHUP has it read its configuration again: it goes over to the routes and
sinks that the files have now, or logs why it doesn't.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os

from hookbus.router import logs
from hookbus.router.alone import run_alone
from hookbus.router.commands.common import add_config
from hookbus.router.commands.registered import add_registration, load_registered
from hookbus.router.part import choose
from hookbus.router.reload import Loaded, tell
from hookbus.router.workers.supervisor import run_workers


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
    def load() -> Loaded:
        registered = load_registered(
            options, lambda sink: os.environ if _runs(options.only, sink) else None
        )
        config = registered.config
        return Loaded(config, choose(config, options.only), registered.notes)

    loaded = load()
    logs.configure(options.log_level)
    tell(loaded.notes)
    metrics = loaded.config.metrics
    listen = options.listen or (metrics.listen if metrics else None)
    gc.freeze()  # what is loaded by now stays; later collections need not look at it
    if loaded.config.workers > 1 and loaded.part.router:
        return asyncio.run(run_workers(loaded, load, listen, options.log_level))
    return asyncio.run(run_alone(loaded, load, listen))


def _runs(only: list[str], sink: str) -> bool:
    return not only or f"sink:{sink}" in only
