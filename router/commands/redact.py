"""Run the redaction pipeline over each line of the input, a JSON value.

A line that is no strict JSON value goes to stderr as a verdict, unquoted, and so does one that
can't be redacted; then the exit code is 1.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hookbus.codecs.strict import Limits, encode, parse
from hookbus.codecs.verdict import Refusal
from hookbus.policies.redaction.redactor import Redactor, Settings
from hookbus.router import redaction
from hookbus.router.commands.check import refusal
from hookbus.router.commands.common import add_input, complain, lines, write_line
from hookbus.router.errors import ConfigError


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--home", metavar="PATH", help="a directory to shorten to ~, besides every user's home"
    )
    command.add_argument(
        "--secrets-file", type=Path, metavar="FILE",
        help="values that may not appear in any spelling, one a line",
    )  # fmt: skip
    command.add_argument(
        "--no-pii", action="store_true", help="leave e-mail addresses and telephone numbers"
    )
    add_input(command)


def execute(options: argparse.Namespace) -> int:
    redactor = Redactor(Settings(_secrets(options.secrets_file), options.home, not options.no_pii))
    refused = False
    for number, line in enumerate(lines(options.file), 1):
        tree = parse(line, Limits())
        if isinstance(tree, Refusal):
            refused = True
            complain({"line": number, **refusal(tree)})
            continue
        try:
            made = encode(redactor.value(tree))
        except Exception:  # noqa: BLE001 - fails closed, and says so
            refused = True
            complain({"line": number, "ok": False, "code": "redaction_failed"})
            continue
        write_line(made)
    return 1 if refused else 0


def _secrets(file: Path | None) -> tuple[str, ...]:
    if file is None:
        return ()
    try:
        secrets = redaction.listed_in(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{file}: can't be read: {type(error).__name__}"]) from None
    redaction.warn_of_short(secrets)
    return secrets
