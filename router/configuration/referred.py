"""What a configuration refers to and hookbus reads once, not at every use: listed secrets and
certificates. Their content may change while the configuration stays the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from hookbus.router.configuration.config import Config
from hookbus.router.configuration.units import Secret


def contents(config: Config) -> dict[str, str]:
    """Path in the configuration -> a digest of what is there now; empty if it can't be read."""
    return {at: _digest(secret) for at, secret in _references(config)}


def of_sink(name: str, found: Mapping[str, str]) -> dict[str, str]:
    """Those that belong to one sink."""
    prefix = f"sinks.{name}.http."
    return {at: digest for at, digest in found.items() if at.startswith(prefix)}


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The paths that both have, and whose content is another one."""
    return [f"{at} (content)" for at in new if at in old and old[at] != new[at]]


def _references(config: Config) -> Iterator[tuple[str, Secret]]:
    for index, secret in enumerate(config.redaction.secrets):
        yield f"redaction.secrets[{index}]", secret
    if config.redaction.secrets_file is not None:
        yield "redaction.secrets_file", Secret(file=config.redaction.secrets_file)
    for name, sink in config.sinks.items():
        if sink.http is None:
            continue
        for kind in ("ca_file", "cert_file", "key_file"):
            path = getattr(sink.http, kind)
            if path is not None:
                yield f"sinks.{name}.http.{kind}", Secret(file=path)


def _digest(secret: Secret) -> str:
    try:
        content = Path(secret.file).read_bytes() if secret.file else secret.read().encode()
    except (OSError, KeyError):
        return ""
    return hashlib.sha256(content).hexdigest()
