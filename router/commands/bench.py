"""Measure how fast this machine does it, as ratios to what it is compared with.

Runs on shipped events; every number is a median. The official validator is compared with where it
is installed (the PyPI package agenthooksprotocol).
"""

from __future__ import annotations

import argparse
import sys

from hookbus.router.bench.suite import SUITE
from hookbus.router.commands.common import write


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--only", action="append", choices=list(SUITE), default=[], metavar="NAME",
        help=f"one of {', '.join(SUITE)}; may be given several times",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="one JSON object a benchmark")


def execute(options: argparse.Namespace) -> int:
    for name in options.only or SUITE:
        print(f"measuring {name} ...", file=sys.stderr)
        for result in SUITE[name]():
            if options.json:
                write(result)
                continue
            ratios = ", ".join(f"{ratio:g} x {other}" for other, ratio in result.ratios.items())
            print(f"{result.name:<28} {result.per_second:>12,.0f} events/s   {ratios}")
    return 0
