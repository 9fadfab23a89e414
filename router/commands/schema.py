"""Print the JSON Schema of the configuration file, for editors."""

from __future__ import annotations

import argparse

from hookbus.router import config_file
from hookbus.router.commands.common import write


def arguments(command: argparse.ArgumentParser) -> None:
    """None."""


def execute(options: argparse.Namespace) -> int:
    write(config_file.json_schema())
    return 0
