"""Print the copy of each line that a route with this ceiling would write.

Elicitation results, and answers to requests for attention, are correlated with the requests
before them in the input. Refused lines go to
stderr as the verdicts that `check` prints; then the exit code is 1. Without `--redact`
`full` under a `redacted` ceiling becomes `metadata`; with it, so does what can't be redacted.
"""

from __future__ import annotations

import argparse

from hookbus.policies.capture import View
from hookbus.policies.levels import LEVELS
from hookbus.policies.redaction.redactor import Redactor, Settings
from hookbus.router import build
from hookbus.router.commands.check import refusal
from hookbus.router.commands.common import add_input, complain, lines, write_line
from hookbus.router.commands.offline import Judged, judge
from hookbus.router.errors import ConfigError
from hookbus.router.pipeline import context


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--capture", choices=LEVELS, required=True, help="the ceiling of the route"
    )
    command.add_argument(
        "--from", dest="held", choices=LEVELS, default="full",
        help="the level that the ingress is taken to hold (default: full); AEP events say theirs",
    )  # fmt: skip
    command.add_argument(
        "--redact", action="store_true",
        help="run the redaction pipeline, as a route with `redact: true`; for --capture redacted",
    )  # fmt: skip
    add_input(command)


def execute(options: argparse.Namespace) -> int:
    if options.redact and options.capture != "redacted":
        raise ConfigError(["--redact: goes with --capture redacted"])
    copier = build.copier(Redactor(Settings()) if options.redact else None)
    refused = False
    for judged in judge(lines(options.file)):
        if not isinstance(judged, Judged):
            refused = True
            complain({"line": judged[0], **refusal(judged[1])})
            continue
        copies = copier.of(judged.event, context(options.held, judged.finding))
        copy = copies.encoded(copies.grant(options.capture, redact=options.redact), View())
        if copies.spoilt:
            complain({"line": judged.number, "redaction": "failed", "capture": "metadata"})
        write_line(judged.event.raw if copy is None else copy)
    return 1 if refused else 0
