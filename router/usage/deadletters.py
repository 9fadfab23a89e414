"""The usage of `hookbus deadletters`."""

from __future__ import annotations

import argparse
from typing import Final, get_args

from hookbus.codecs.verdict import Code
from hookbus.policies.faults import Reason
from hookbus.router.usage.contract import CONFIGURED, Example, Usage, exits
from hookbus.router.usage.options import (
    CONFIG_FILE,
    SECRETS,
    add_config,
    add_period,
    add_registration,
    add_sink,
)

_MODULE: Final = "hookbus.router.commands.deadletters"
_REASONS: Final = sorted({*get_args(Code), *get_args(Reason)} - {"stream"})


def _filters(command: argparse.ArgumentParser) -> None:
    add_config(command)
    add_registration(command)
    command.add_argument(
        "--reason", choices=_REASONS, metavar="REASON",
        help=f"only with this reason (default: with any): {', '.join(_REASONS)}",
    )  # fmt: skip
    add_sink(command, "only what this sink gave up (default: of any)")
    command.add_argument(
        "--stage", choices=["router", "sink"], metavar="STAGE",
        help="only what the `router` could not process, or what a `sink` gave up (default: both)",
    )  # fmt: skip
    add_period(command)


def _list(command: argparse.ArgumentParser) -> None:
    _filters(command)
    command.add_argument(
        "--counts", action="store_true",
        help="print how many there are of each kind instead (default: print each)",
    )  # fmt: skip


def _replay(command: argparse.ArgumentParser) -> None:
    _filters(command)
    command.add_argument(
        "--dry-run", action="store_true",
        help="say what would be done; send and remember nothing (default: do it)",
    )  # fmt: skip
    command.add_argument(
        "--rate", type=_rate, metavar="N", help="at most N records a second (default: no limit)"
    )
    command.add_argument(
        "--max-attempts", type=int, default=3, metavar="N",
        help="leave out records that were replayed N times already (default: 3)",
    )  # fmt: skip


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError("expected a number above 0")
    return rate


def _nothing(command: argparse.ArgumentParser) -> None:
    """None of its own."""


LIST = Usage(
    "list",
    _MODULE,
    "Print dead letters.",
    "One JSON object a dead letter: its own place in the dead-letter topic (`letter`: "
    "partition/offset), when it was written, why, and where the record is that it is about. The "
    "bytes that a topic at `full` holds are not shown.\n"
    "With --counts, one JSON object a kind: stage, reason, sink, route and count.",
    _list,
    exits(*CONFIGURED),
    (
        Example("hookbus deadletters list -c hookbus.yaml --since 24h", "What went wrong today"),
        Example("hookbus deadletters list -c hookbus.yaml --counts", "How much of what"),
    ),
    files=CONFIG_FILE,
    environment=SECRETS,
)

REPLAY = Usage(
    "replay",
    _MODULE,
    "Send again what dead letters are about.",
    "Refused input goes to its ingress topic again, as it was, and what a sink gave up to that "
    "sink alone, cut down to what the route of its topic allows now. What one route could not "
    "write goes through all routes again, with the same identity.\n"
    "What has been replayed is remembered and not sent again. What can't be replayed is named on "
    "standard error, with the progress, one JSON object a line; the summary is one on standard "
    "output.",
    _replay,
    exits(*CONFIGURED, _1="Something that was asked for could not be replayed."),
    (
        Example(
            "hookbus deadletters replay -c hookbus.yaml --dry-run", "See first what would be sent"
        ),
        Example(
            "hookbus deadletters replay -c hookbus.yaml --sink local.archive --reason disk_full "
            "--rate 100",
            "Give a backend what it missed, 100 records a second",
        ),
    ),
    files=CONFIG_FILE,
    environment=SECRETS,
)

DEADLETTERS = Usage(
    "deadletters",
    _MODULE,
    "List dead letters, or replay what they are about.",
    "A dead letter tells of a record that could not be processed, or that a sink gave up: where it "
    "is, and why.",
    _nothing,
    {},
    (*LIST.examples[:1], *REPLAY.examples[:1]),
    actions=(LIST, REPLAY),
)
