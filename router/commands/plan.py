"""Check a configuration offline and print what it comes to.

Prints one JSON object a route (its level and topic), then one a sink (its topics, and where its
failures are recorded). All problems are named, on stderr, and the exit code is then 2.
"""

from __future__ import annotations

import argparse

from hookbus.router import plan
from hookbus.router.commands.common import add_config, load_config, write


def arguments(command: argparse.ArgumentParser) -> None:
    add_config(command)


def execute(options: argparse.Namespace) -> int:
    for line in plan.describe(load_config(options.config)):
        write(line)
    return 0
