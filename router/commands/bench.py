"""`hookbus bench`; see `hookbus.router.usage.bench`."""

from __future__ import annotations

import argparse
import sys

from hookbus.router.bench.suite import SUITE
from hookbus.router.commands.common import write


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
