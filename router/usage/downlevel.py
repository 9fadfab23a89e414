"""The usage of `hookbus downlevel`."""

from __future__ import annotations

import argparse

from hookbus.policies.levels import LEVELS
from hookbus.router.usage.contract import FINE, INTERRUPTED, REFUSED, USAGE, Example, Usage, exits
from hookbus.router.usage.options import add_input


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--capture", choices=LEVELS, required=True, metavar="LEVEL",
        help=f"the ceiling of the route: {', '.join(LEVELS)}; required",
    )  # fmt: skip
    command.add_argument(
        "--from", dest="held", choices=LEVELS, default="full", metavar="LEVEL",
        help="the level that the ingress is taken to hold (default: full); AEP events say theirs",
    )  # fmt: skip
    command.add_argument(
        "--redact", action="store_true",
        help="run the redaction pipeline, as a route with `redact: true`; goes with --capture "
        "redacted (default: don't, and full becomes metadata there)",
    )  # fmt: skip
    add_input(command)


DOWNLEVEL = Usage(
    "downlevel",
    "hookbus.router.commands.downlevel",
    "Print the copy of each line that a route with this ceiling would write.",
    "Elicitation results, and answers to requests for attention, are correlated with the requests "
    "before them in the input. Refused lines go to standard error as the verdicts that `hookbus "
    "check` prints. With --redact, what can't be redacted becomes metadata.",
    arguments,
    exits(FINE, REFUSED, USAGE, INTERRUPTED),
    (
        Example(
            "hookbus downlevel --capture metadata session.jsonl",
            "What a dashboard without content would get",
        ),
        Example(
            "hookbus downlevel --capture redacted --redact session.jsonl",
            "What a reviewer of redacted texts would get",
        ),
    ),
)
