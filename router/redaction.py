"""The redactor that a configuration asks for: its secrets are read here, once, at the start."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from hookbus.policies.redaction.listed import SHORTEST, too_short
from hookbus.policies.redaction.redactor import Redactor, Settings
from hookbus.router.configuration.config import Config
from hookbus.router.configuration.units import Secret
from hookbus.router.errors import StartupError

_log = logging.getLogger("hookbus.redaction")


def redactor(config: Config, read: Callable[[Secret, str], str]) -> Redactor | None:
    """`read` reads a secret that is asked for at a place of the configuration. None if no route
    redacts: then nothing is read. Raises StartupError, which names what can't be read and quotes
    nothing of it."""
    if not any(route.redact for route in config.routes.values()):
        return None
    asked = config.redaction
    secrets = tuple(
        read(secret, f"redaction.secrets[{index}]") for index, secret in enumerate(asked.secrets)
    )
    if asked.secrets_file is not None:
        try:
            secrets += listed_in(Path(asked.secrets_file))
        except (OSError, UnicodeDecodeError):
            problem = f"redaction.secrets_file: file {asked.secrets_file} can't be read"
            raise StartupError(problem) from None
    _warn_of_short(secrets)
    return Redactor(Settings(secrets, asked.home, asked.pii))


def listed_in(file: Path) -> tuple[str, ...]:
    """The values in a file, one a line; blank lines are none. Raises OSError or
    UnicodeDecodeError."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line.strip())


def _warn_of_short(secrets: tuple[str, ...]) -> None:
    """Say how many listed values are too short to look for."""
    ignored = too_short(secrets)
    if ignored:
        _log.warning("short_secrets_ignored", extra={"count": ignored, "shortest": SHORTEST})
