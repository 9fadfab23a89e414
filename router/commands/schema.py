"""`hookbus schema`; see `hookbus.router.usage.schema`."""

from __future__ import annotations

import argparse

from hookbus.router import config_file
from hookbus.router.commands.common import write


def execute(options: argparse.Namespace) -> int:
    write(config_file.json_schema())
    return 0
