"""The usage of `hookbus bench`."""

from __future__ import annotations

import argparse
from typing import Final

from hookbus.router.usage.contract import FINE, INTERRUPTED, USAGE, Example, Usage, exits

NAMES: Final = ("validate", "pipeline", "redact")


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--only", action="append", choices=NAMES, default=[], metavar="NAME",
        help=f"one of {', '.join(NAMES)}; may be given several times (default: all of them)",
    )  # fmt: skip
    command.add_argument(
        "--json", action="store_true",
        help="one JSON object a benchmark, with events a second (default: a table)",
    )  # fmt: skip


BENCH = Usage(
    "bench",
    "hookbus.router.commands.bench",
    "Measure how fast this machine does it, as ratios to what it is compared with.",
    "Runs on shipped events; every number is a median. The official validator is compared with "
    "where it is installed (the PyPI package agenthooksprotocol).",
    arguments,
    exits(FINE, USAGE, INTERRUPTED),
    (Example("hookbus bench --only validate --json", "One benchmark, for a program to read"),),
)
