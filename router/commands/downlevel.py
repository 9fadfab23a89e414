"""`hookbus downlevel`; see `hookbus.router.usage.downlevel`."""

from __future__ import annotations

import argparse

from hookbus.policies.capture import View
from hookbus.policies.redaction.redactor import Redactor, Settings
from hookbus.router import build
from hookbus.router.commands.check import refusal
from hookbus.router.commands.common import complain, lines, write_line
from hookbus.router.commands.offline import Judged, judge
from hookbus.router.errors import ConfigError
from hookbus.router.pipeline import context


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
