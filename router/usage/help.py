"""The usage of `hookbus help`."""

from __future__ import annotations

import argparse

from hookbus.router.usage.contract import FINE, USAGE, Example, Usage, exits


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "topic", nargs="*", metavar="COMMAND",
        help="a command, and its action if it has some (default: hookbus itself)",
    )  # fmt: skip


HELP = Usage(
    "help",
    "hookbus.router.commands.help",
    "Print the help of a command, as its --help does.",
    "Without a command, that of hookbus.",
    arguments,
    exits(FINE, USAGE),
    (
        Example("hookbus help run", "The same as hookbus run --help"),
        Example("hookbus help deadletters replay", "Of an action"),
    ),
)
