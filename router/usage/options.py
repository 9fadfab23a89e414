"""Options that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hookbus.policies.levels import LEVELS
from hookbus.router.usage.names import completing, sinks

CONFIG_FILE: Final[Mapping[str, str]] = {
    "-c FILE": "The configuration, YAML. `hookbus schema` prints its JSON Schema, with every "
    "setting, and `hookbus plan` checks it. Examples are in deploy/examples.",
}
SECRETS: Final[Mapping[str, str]] = {
    "{env: NAME}": "What the configuration calls a secret is read from the variables that "
    "it names.",
}


def add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-c", "--config", type=Path, required=True, metavar="FILE",
        help="the configuration, a YAML file; required",
    )  # fmt: skip


def add_input(command: argparse.ArgumentParser, what: str = "JSON Lines: one event a line") -> None:
    command.add_argument(
        "file", nargs="?", type=Path, metavar="FILE",
        help=f"{what}; `-`, the default, is standard input",
    )  # fmt: skip


def add_registration(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--registration", action="append", default=[], type=Path, metavar="FILE",
        help="an AHP registration document (JSON): each of its HTTP backends with observe "
        "subscriptions becomes routes and a fail-open sink; may be given several times "
        "(default: none)",
    )  # fmt: skip
    command.add_argument(
        "--registration-capture", choices=LEVELS, default="metadata", metavar="LEVEL",
        help=f"the capture level that their routes have at most: {', '.join(LEVELS)} (default: "
        "metadata)",
    )  # fmt: skip


def add_period(command: argparse.ArgumentParser) -> None:
    for option, which in (("--since", "at this time or later"), ("--until", "before this time")):
        command.add_argument(
            option, metavar="TIME|DURATION",
            help=f"only what was written {which}: RFC 3339, such as 2026-03-12T09:14:02Z, or so "
            "long ago, such as 90s, 30m, 2h or 7d (default: everything)",
        )  # fmt: skip


def add_sink(command: argparse.ArgumentParser, what: str) -> None:
    completing(command.add_argument("--sink", metavar="NAME", help=what), sinks)
