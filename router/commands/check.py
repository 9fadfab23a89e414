"""Give a verdict on each line of the input.

Prints one JSON object a line: `{"line":1,"ok":true,"protocol":"ahp","type":…,"source":…,"id":…,
"capture":"full"}`, or `{"line":2,"ok":false,"code":"schema","path":"/elicitation/mode",
"rule":"enum"}`. Elicitations, and answers to AEP requests, also have `body` (conforming, or what is
wrong with it) and `result` (matched, orphan, late, duplicate, conflicting or mismatched), where
these are known. An AEP event that breaks a rule of its stream is refused with the code `stream` and
that rule. A verdict never quotes a value of an event that it refuses. Exits with 1 if any line was
refused.
"""

from __future__ import annotations

import argparse
from typing import Any, get_args

from hookbus.codecs.event import Event, Protocol
from hookbus.codecs.verdict import Refusal
from hookbus.policies.aep_capture import level_of
from hookbus.policies.levels import Level, declared, held
from hookbus.router.commands.common import add_input, lines, write
from hookbus.router.commands.offline import Judged, judge


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format", choices=["auto", *get_args(Protocol)], default="auto",
        help="what the lines are taken to be (default: told from each value)",
    )  # fmt: skip
    add_input(command)


def execute(options: argparse.Namespace) -> int:
    refused = False
    protocol = None if options.format == "auto" else options.format
    for judged in judge(lines(options.file), protocol):
        number, told = _told(judged)
        refused = refused or not told["ok"]
        write({"line": number, **told})
    return 1 if refused else 0


def _told(judged: Judged | tuple[int, Refusal]) -> tuple[int, dict[str, Any]]:
    """The number of a line and what is said of it."""
    if not isinstance(judged, Judged):
        return judged[0], refusal(judged[1])
    broken = judged.violation
    if broken is not None:
        return judged.number, refusal(Refusal("stream", broken.path, broken.rule))
    return judged.number, verdict(judged)


def verdict(judged: Judged) -> dict[str, Any]:
    """What `check` says of a valid event; of an elicitation also what is known of its body and of
    the request that it answers, and of a CloudEvent how many attributes the event can't have."""
    event, finding = judged.event, judged.finding
    told: dict[str, Any] = {
        "ok": True,
        "protocol": event.protocol,
        "type": event.type,
        "source": event.source,
        "id": event.id,
        "capture": _level(event),
    }
    if finding is not None and finding.body is not None:
        told["body"] = finding.body
    if finding is not None and finding.classification is not None:
        told["result"] = finding.classification
    if event.dropped:
        told["dropped"] = event.dropped
    return told


def _level(event: Event) -> Level:
    return level_of(event.tree) if event.protocol == "aep" else held("full", declared(event.tree))


def refusal(why: Refusal) -> dict[str, Any]:
    """A refusal as `check` prints it."""
    told = {"code": why.code, "path": why.path, "rule": why.rule}
    return {"ok": False, **{name: value for name, value in told.items() if value is not None}}
