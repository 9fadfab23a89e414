"""The usage of `hookbus schema`."""

from __future__ import annotations

import argparse

from hookbus.router.usage.contract import FINE, USAGE, Example, Usage, exits


def arguments(command: argparse.ArgumentParser) -> None:
    """None."""


SCHEMA = Usage(
    "schema",
    "hookbus.router.commands.schema",
    "Print the JSON Schema of the configuration file, for editors.",
    "Editors that know YAML complete and check a configuration with it.",
    arguments,
    exits(FINE, USAGE),
    (Example("hookbus schema > hookbus.schema.json", "Keep it where the editor finds it"),),
)
