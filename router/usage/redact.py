"""The usage of `hookbus redact`."""

from __future__ import annotations

import argparse
from pathlib import Path

from hookbus.router.usage.contract import FINE, INTERRUPTED, REFUSED, USAGE, Example, Usage, exits
from hookbus.router.usage.options import add_input


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--home", metavar="PATH",
        help="a directory to shorten to ~, besides every user's home (default: none)",
    )  # fmt: skip
    command.add_argument(
        "--secrets-file", type=Path, metavar="FILE",
        help="values of four characters or more that may not appear in any spelling, one a line "
        "(default: none)",
    )  # fmt: skip
    command.add_argument(
        "--no-pii", action="store_true",
        help="leave e-mail addresses and telephone numbers (default: they go)",
    )  # fmt: skip
    add_input(command, "JSON Lines: one value of any kind a line")


REDACT = Usage(
    "redact",
    "hookbus.router.commands.redact",
    "Run the redaction pipeline over each line of the input, a JSON value.",
    "A line that is no strict JSON value goes to standard error as a verdict, unquoted, and so "
    "does one that can't be redacted. What nothing marks as a secret is not found.",
    arguments,
    exits(FINE, REFUSED, USAGE, INTERRUPTED),
    (
        Example("hookbus redact session.jsonl", "See what redaction takes away"),
        Example(
            "hookbus redact --secrets-file secrets.txt --no-pii session.jsonl",
            "Take away these values, and leave addresses",
        ),
    ),
    files={
        "--secrets-file FILE": "One secret a line, UTF-8; standard error says how many are too "
        "short to be looked for."
    },
)
