"""`python -m tests.chaos [--seconds N] [--seed N]`: prints the checker's table; exits with 1 if
anything in it doesn't hold."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.clock import Clock
from tests.chaos.cluster import cluster
from tests.chaos.play import Play
from tests.processes import Processes


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=540, help="how long things break")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.seconds:.0f} seconds", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="hookbus-chaos-") as folder,
        cluster() as nodes,
    ):
        clock = Clock(Path(folder))
        if not clock.can_step:
            print("there is no C compiler: no clock is stepped", flush=True)
        with Processes(clock.environment) as processes:
            play = Play(
                nodes, Path(folder), clock, processes, seconds=options.seconds, seed=options.seed
            )
            rows = asyncio.run(play.run())
    for what, counted, holds in rows:
        print(f"{'ok  ' if holds else 'FAIL'}  {what:<62} {counted}")
    return 0 if all(holds for *_, holds in rows) else 1


sys.exit(main())
