"""`hookbus plan`; see `hookbus.router.usage.plan`."""

from __future__ import annotations

import argparse

from hookbus.router.commands.common import write
from hookbus.router.commands.registered import load_registered
from hookbus.router.configuration import plan


def execute(options: argparse.Namespace) -> int:
    loaded = load_registered(options, lambda backend: None)
    for line in plan.describe(loaded.config):
        write(line)
    for note in loaded.notes:
        write(note)
    return 0
