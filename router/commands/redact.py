"""`hookbus redact`; see `hookbus.router.usage.redact`."""

from __future__ import annotations

import argparse
from pathlib import Path

from hookbus.codecs.strict import Limits, encode, parse
from hookbus.codecs.verdict import Refusal
from hookbus.policies.redaction.listed import SHORTEST, too_short
from hookbus.policies.redaction.redactor import Redactor, Settings
from hookbus.router import redaction
from hookbus.router.commands.check import refusal
from hookbus.router.commands.common import complain, lines, write_line
from hookbus.router.errors import ConfigError


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
    if ignored := too_short(secrets):
        complain({"short_secrets_ignored": ignored, "shortest": SHORTEST})
    return secrets
