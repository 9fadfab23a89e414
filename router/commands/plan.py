"""Check a configuration offline and print what it comes to.

Prints one JSON object a route (its level and topic), then one a sink (its topics, and where its
failures are recorded), then one a note on a registration document. All problems are named, on
stderr, and the exit code is then 2. Credentials are not looked up.
"""

from __future__ import annotations

import argparse

from hookbus.router import plan
from hookbus.router.commands.common import add_config, write
from hookbus.router.commands.registered import add_registration, load_registered


def arguments(command: argparse.ArgumentParser) -> None:
    add_config(command)
    add_registration(command)


def execute(options: argparse.Namespace) -> int:
    loaded = load_registered(options, lambda backend: None)
    for line in plan.describe(loaded.config):
        write(line)
    for note in loaded.notes:
        write(note)
    return 0
