"""`hookbus demo`; see `hookbus.router.usage.demo`."""

from __future__ import annotations

import argparse
import asyncio

from hookbus.router.demo import scenario


def execute(options: argparse.Namespace) -> int:
    return asyncio.run(scenario.play(keep=options.keep))
