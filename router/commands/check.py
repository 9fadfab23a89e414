"""Give a verdict on each line of the input.

Prints one JSON object a line: `{"line":1,"ok":true,"protocol":"ahp","type":…,"source":…,"id":…,
"capture":"full"}`, or `{"line":2,"ok":false,"code":"schema","path":"/elicitation/mode",
"rule":"enum"}`. Elicitations also have `body` (conforming, or what is wrong with it) and, results,
`result` (matched, orphan, late, duplicate, conflicting or mismatched), where these are known. A
verdict never quotes a value of an event that it refuses. Exits with 1 if any line was refused.
"""

from __future__ import annotations

import argparse
from typing import Any

from hookbus.codecs.verdict import Refusal
from hookbus.policies.levels import declared, held
from hookbus.router.commands.common import add_input, lines, write
from hookbus.router.commands.offline import Judged, judge


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format", choices=["auto", "ahp"], default="auto",
        help="what the lines are taken to be (default: told from each value; AEP is not known yet)",
    )  # fmt: skip
    add_input(command)


def execute(options: argparse.Namespace) -> int:
    refused = False
    for judged in judge(lines(options.file)):
        if isinstance(judged, Judged):
            write({"line": judged.number, **verdict(judged)})
        else:
            refused = True
            write({"line": judged[0], **refusal(judged[1])})
    return 1 if refused else 0


def verdict(judged: Judged) -> dict[str, Any]:
    """What `check` says of a valid event; of an elicitation also what is known of its body and of
    the request that it answers."""
    event, finding = judged.event, judged.finding
    told = {
        "ok": True,
        "protocol": event.protocol,
        "type": event.type,
        "source": event.source,
        "id": event.id,
        "capture": held("full", declared(event.tree)),
    }
    if finding is not None and finding.body is not None:
        told["body"] = finding.body
    if finding is not None and finding.classification is not None:
        told["result"] = finding.classification
    return told


def refusal(why: Refusal) -> dict[str, Any]:
    """A refusal as `check` prints it."""
    told = {"code": why.code, "path": why.path, "rule": why.rule}
    return {"ok": False, **{name: value for name, value in told.items() if value is not None}}
