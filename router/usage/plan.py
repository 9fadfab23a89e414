"""The usage of `hookbus plan`."""

from __future__ import annotations

import argparse

from hookbus.router.usage.contract import FINE, USAGE, Example, Usage, exits
from hookbus.router.usage.options import CONFIG_FILE, add_config, add_registration


def arguments(command: argparse.ArgumentParser) -> None:
    add_config(command)
    add_registration(command)


PLAN = Usage(
    "plan",
    "hookbus.router.commands.plan",
    "Check a configuration offline and print what it comes to.",
    "One JSON object a route (its level and topic), then one a sink (its topics, and where its "
    "failures are recorded), then one for traces, then one a note on a registration document. All "
    "problems are named, on standard error. Nothing is connected to, and credentials are not "
    "looked up.",
    arguments,
    exits(FINE, USAGE, _2="There are problems, which stderr names, one a line."),
    (
        Example("hookbus plan -c hookbus.yaml", "Before every start and in every pull request"),
        Example(
            "hookbus plan -c hookbus.yaml --registration registration.json "
            "--registration-capture none",
            "With what an AHP registration adds to it",
        ),
    ),
    files=CONFIG_FILE,
)
