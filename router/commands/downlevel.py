"""Print the copy of each line that a route with this ceiling would write.

Refused lines go to stderr as the verdicts that `check` prints; then the exit code is 1. Without a
redaction pipeline `full` under a `redacted` ceiling becomes `metadata`.
"""

from __future__ import annotations

import argparse

from hookbus.codecs.decode import Decoder
from hookbus.codecs.verdict import Refusal
from hookbus.policies.levels import LEVELS, declared, grant, held
from hookbus.router import build
from hookbus.router.commands.check import refusal
from hookbus.router.commands.common import add_input, complain, lines, write_line
from hookbus.router.pipeline import copy_of


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--capture", choices=LEVELS, required=True, help="the ceiling of the route"
    )
    command.add_argument(
        "--from", dest="held", choices=LEVELS, default="full",
        help="the level that the ingress is taken to hold (default: full)",
    )  # fmt: skip
    add_input(command)


def execute(options: argparse.Namespace) -> int:
    decoder, rewriter = Decoder(), build.rewriter()
    refused = False
    for number, line in enumerate(lines(options.file), 1):
        event = decoder.decode(line)
        if isinstance(event, Refusal):
            refused = True
            complain({"line": number, **refusal(event)})
            continue
        granted = grant(held(options.held, declared(event.tree)), options.capture)
        write_line(copy_of(event, granted, rewriter))
    return 1 if refused else 0
