"""`hookbus run`; see `hookbus.router.usage.run`."""

from __future__ import annotations

import argparse
import os

from hookbus.router.commands.registered import load_registered
from hookbus.router.processes.alone import run_alone
from hookbus.router.processes.event_loop import runner
from hookbus.router.processes.garbage import collect_rarely
from hookbus.router.processes.part import choose
from hookbus.router.processes.reload import Loaded, tell
from hookbus.router.processes.workers.supervisor import run_workers
from hookbus.router.telemetry import logs


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
    collect_rarely()
    with runner(loaded.config.event_loop) as loop:
        if loaded.config.workers > 1 and loaded.part.router:
            return loop.run(run_workers(loaded, load, listen, options.log_level))
        return loop.run(run_alone(loaded, load, listen))


def _runs(only: list[str], sink: str) -> bool:
    return not only or f"sink:{sink}" in only
