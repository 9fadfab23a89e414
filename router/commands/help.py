"""`hookbus help`."""

from __future__ import annotations

import argparse

from hookbus.router.usage.every import COMMANDS
from hookbus.router.usage.parser import make


def execute(options: argparse.Namespace) -> int:
    make(COMMANDS).parse([*options.topic, "--help"])
    return 0
