"""`hookbus schema`; see `hookbus.router.usage.schema`."""

from __future__ import annotations

import argparse

from hookbus.router.commands.common import write
from hookbus.router.configuration import config_file


def execute(options: argparse.Namespace) -> int:
    write(config_file.json_schema())
    return 0
