"""Give a verdict on each line of the input.

Prints one JSON object a line: `{"line":1,"ok":true,"protocol":"ahp","type":…,"source":…,"id":…,
"capture":"full"}`, or `{"line":2,"ok":false,"code":"schema","path":"/elicitation/mode",
"rule":"enum"}`. A verdict never quotes a value of an event that it refuses. Exits with 1 if any
line was refused.
"""

from __future__ import annotations

import argparse
from typing import Any

from hookbus.codecs.decode import Decoder
from hookbus.codecs.verdict import Refusal
from hookbus.policies.levels import declared, held
from hookbus.router.commands.common import add_input, lines, write


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format", choices=["auto", "ahp"], default="auto",
        help="what the lines are taken to be (default: told from each value; AEP is not known yet)",
    )  # fmt: skip
    add_input(command)


def execute(options: argparse.Namespace) -> int:
    decoder = Decoder()
    refused = False
    for number, line in enumerate(lines(options.file), 1):
        found = verdict(decoder, line)
        refused |= not found["ok"]
        write({"line": number, **found})
    return 1 if refused else 0


def verdict(decoder: Decoder, line: bytes) -> dict[str, Any]:
    """What `check` says of one line, without its number."""
    event = decoder.decode(line)
    if isinstance(event, Refusal):
        return refusal(event)
    return {
        "ok": True,
        "protocol": event.protocol,
        "type": event.type,
        "source": event.source,
        "id": event.id,
        "capture": held("full", declared(event.tree)),
    }


def refusal(why: Refusal) -> dict[str, Any]:
    """A refusal as `check` prints it."""
    told = {"code": why.code, "path": why.path, "rule": why.rule}
    return {"ok": False, **{name: value for name, value in told.items() if value is not None}}
