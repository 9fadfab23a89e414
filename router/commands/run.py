"""`hookbus run`; see `hookbus.router.usage.run`."""

from __future__ import annotations

import argparse
import os

from hookbus.router.commands.registered import load_registered
from hookbus.router.configuration.config import Config
from hookbus.router.configuration.listen import Listen
from hookbus.router.errors import ConfigError
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
    listen = _listen(options.listen, loaded.config)
    logs.configure(options.log_level)
    tell(loaded.notes)
    collect_rarely()
    with runner(loaded.config.event_loop) as loop:
        if loaded.config.workers > 1 and loaded.part.router:
            return loop.run(run_workers(loaded, load, listen, options.log_level))
        return loop.run(run_alone(loaded, load, listen))


def _listen(option: str | None, config: Config) -> Listen | None:
    """Where to listen, if anywhere. Raises ConfigError."""
    if option is None:
        return Listen.parse(config.metrics.listen) if config.metrics is not None else None
    try:
        return Listen.parse(option)
    except ValueError as error:
        raise ConfigError([f"--listen: {error}"]) from None


def _runs(only: list[str], sink: str) -> bool:
    return not only or f"sink:{sink}" in only
