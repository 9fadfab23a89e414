"""`hookbus bench`; see `hookbus.router.usage.bench`."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

from hookbus.router.bench.broker import tansu_binary
from hookbus.router.bench.budget import FULL
from hookbus.router.bench.suite import SUITE
from hookbus.router.bench.table import line
from hookbus.router.bench.workbench import Workbench
from hookbus.router.commands.common import write
from hookbus.router.processes.garbage import collect_rarely


def execute(options: argparse.Namespace) -> int:
    collect_rarely()  # as the service does
    with ExitStack() as stack:
        bench = Workbench(FULL, options.broker, tansu_binary(), _say, stack)
        for name in options.only or SUITE:
            _say(f"measuring {name} ...")
            for result in SUITE[name](bench):
                if options.json:
                    write(result)
                else:
                    print(line(result))
                sys.stdout.flush()
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)
