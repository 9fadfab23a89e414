"""The usage of `hookbus failures`."""

from __future__ import annotations

import argparse
from typing import Final

from hookbus.router.usage.contract import CONFIGURED, Example, Usage, exits
from hookbus.router.usage.options import (
    CONFIG_FILE,
    SECRETS,
    add_config,
    add_period,
    add_registration,
    add_sink,
)

_MODULE: Final = "hookbus.router.commands.failures"


def _list(command: argparse.ArgumentParser) -> None:
    add_config(command)
    add_registration(command)
    add_sink(command, "only deliveries to this one (default: to all)")
    add_period(command)
    command.add_argument(
        "--journal-only", action="store_true",
        help="look at this machine's journal alone, for when the bus is away (default: the topic "
        "too)",
    )  # fmt: skip


def _nothing(command: argparse.ArgumentParser) -> None:
    """None of its own."""


LIST = Usage(
    "list",
    _MODULE,
    "Print failed deliveries.",
    "One JSON object a failure: time, sink, reason, policy, the source and id of the event that "
    "was not delivered, and where it is recorded: `journal` in this machine's journal, from which "
    "it goes to the failures topic; `journal_only` if it stays there; `topic` in that topic. Those "
    "that harnesses report of their own backends are in the topic too.",
    _list,
    exits(*CONFIGURED),
    (
        Example("hookbus failures list -c hookbus.yaml", "Everything that is recorded"),
        Example(
            "hookbus failures list -c hookbus.yaml --sink local.archive --since 2h --journal-only",
            "What one sink failed to take, while the bus is away",
        ),
    ),
    files={
        **CONFIG_FILE,
        "failures.journal": "The journal, a SQLite file of this machine; it is not made by looking "
        "at it.",
    },
    environment=SECRETS,
)

FAILURES = Usage(
    "failures",
    _MODULE,
    "List failed deliveries.",
    "Each delivery that failed under its sink's policy is recorded in the journal and, from there, "
    "in the failures topic.",
    _nothing,
    {},
    LIST.examples[:1],
    actions=(LIST,),
)
