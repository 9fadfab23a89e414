"""`hookbus check`; see `hookbus.router.usage.check`."""

from __future__ import annotations

import argparse
from typing import Any

from hookbus.codecs.event import Event
from hookbus.codecs.verdict import Refusal
from hookbus.policies.aep_capture import level_of
from hookbus.policies.levels import Level, declared, held
from hookbus.router.commands.common import lines, write
from hookbus.router.commands.offline import Judged, judge


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
