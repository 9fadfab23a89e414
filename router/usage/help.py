"""The usage of `hookbus help`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from hookbus.router.usage.contract import FINE, USAGE, Example, Usage, exits


def arguments(command: argparse.ArgumentParser) -> None:
    topic = command.add_argument(
        "topic", nargs="*", metavar="COMMAND",
        help="a command, and its action if it has some (default: hookbus itself)",
    )  # fmt: skip
    topic.completer = _names  # type: ignore[attr-defined]  # where argcomplete looks for it


def _names(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """What may come after the words so far."""
    from hookbus.router.usage.every import COMMANDS  # which names this command, too

    known: Iterable[Usage] = COMMANDS
    for word in parsed_args.topic or ():
        known = [action for usage in known if usage.name == word for action in usage.actions]
    return [usage.name for usage in known]


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
