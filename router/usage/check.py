"""The usage of `hookbus check`."""

from __future__ import annotations

import argparse
from typing import get_args

from hookbus.codecs.verdict import Code
from hookbus.router.usage.contract import INTERRUPTED, USAGE, Example, Usage, exits
from hookbus.router.usage.options import add_input

_FORMATS = ("auto", "ahp", "aep")
_CODES = tuple(code for code in get_args(Code) if code != "stream")


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format", choices=_FORMATS, default="auto", metavar="FORMAT",
        help="what the lines are taken to be: ahp, aep, or told from each value by auto (default: "
        "auto)",
    )  # fmt: skip
    add_input(command)


CHECK = Usage(
    "check",
    "hookbus.router.commands.check",
    "Give a verdict on each line of the input.",
    'One JSON object a line: {"line":1,"ok":true,"protocol":"ahp",...} with type, source, id and '
    'capture, or {"line":2,"ok":false,"code":"schema",...} with path and rule, where they apply. A '
    "verdict never quotes a value of an event that it refuses.\n"
    f"The codes are {', '.join(_CODES)}, and stream for an AEP event that breaks a "
    "rule of its stream.\n"
    "Elicitations, and answers to AEP requests, also have `body` (conforming, or what is wrong "
    "with it) and `result` (matched, orphan, late, duplicate, conflicting or mismatched), where "
    "these are known.",
    arguments,
    exits(
        USAGE,
        INTERRUPTED,
        _0="Every line holds a valid event.",
        _1="At least one line was refused.",
    ),
    (
        Example("hookbus check session.jsonl", "See whether an agent's events are valid"),
        Example(
            "head -n 1 session.jsonl | hookbus check --format ahp", "Say which protocol it must be"
        ),
    ),
)
