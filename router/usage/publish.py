"""The usage of `hookbus publish`."""

from __future__ import annotations

import argparse

from hookbus.router.usage.contract import CONFIGURED, Example, Usage, exits
from hookbus.router.usage.names import completing, ingresses
from hookbus.router.usage.options import CONFIG_FILE, SECRETS, add_config, add_input


def arguments(command: argparse.ArgumentParser) -> None:
    add_config(command)
    ingress = command.add_argument(
        "--ingress", required=True, metavar="NAME",
        help="a name in the section `ingress`; required",
    )  # fmt: skip
    completing(ingress, ingresses)
    add_input(command)


PUBLISH = Usage(
    "publish",
    "hookbus.router.commands.publish",
    "Append each line of the input to an ingress, unjudged.",
    "One record a line, in the ingress's first topic, keyed by the event's `source` where it has "
    "one. Returns when all are durable; their number goes to standard error, also if it fails in "
    "the middle.",
    arguments,
    exits(
        *CONFIGURED,
        _1="A line is larger than the bus takes (`max_message`). Only the lines that standard "
        "error counts were sent, none after them.",
    ),
    (
        Example(
            "hookbus publish -c hookbus.yaml --ingress agents session.jsonl",
            "Send what is in a file",
        ),
        Example(
            "tail -n 3 session.jsonl | hookbus publish -c hookbus.yaml --ingress agents -",
            "Send what a program writes",
        ),
    ),
    files=CONFIG_FILE,
    environment=SECRETS,
)
