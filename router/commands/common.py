"""What several commands share: where lines come from, and how a configuration is loaded."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hookbus.router import build, config_file, plan
from hookbus.router.config import Config
from hookbus.router.errors import ConfigError
from hookbus.router.letters import moment


def add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-c", "--config", type=Path, required=True, metavar="FILE", help="configuration (YAML)"
    )


def add_input(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="JSON Lines; stdin by default"
    )


def add_period(command: argparse.ArgumentParser) -> None:
    for option, which in (("--since", "not before"), ("--until", "before")):
        command.add_argument(
            option, metavar="TIME|DURATION",
            help=f"only what was written {which} this time (RFC 3339), or so long ago (such as 2h)",
        )  # fmt: skip


def period(options: argparse.Namespace) -> tuple[int | None, int | None]:
    """`--since` and `--until` in ms since the epoch. Raises ConfigError."""
    return _moment(options.since, "--since"), _moment(options.until, "--until")


def _moment(text: str | None, option: str) -> int | None:
    try:
        return None if text is None else moment(text, time.time)
    except (ValueError, OverflowError) as error:
        why = "expected a time such as 2026-03-12T09:14:02Z or a duration such as 2h"
        raise ConfigError([f"{option}: {why}"]) from error


def load_config(path: Path) -> Config:
    """A configuration without problems. Raises ConfigError with all of them."""
    config = config_file.load(path)
    found = plan.problems(config, build.event_types())
    if found:
        raise ConfigError(found)
    return config


def lines(file: Path | None) -> Iterator[bytes]:
    """The lines of the input without their ends, one at a time. Raises ConfigError if there is no
    such file."""
    if file is None:
        yield from _lines(sys.stdin.buffer)
        return
    try:
        with file.open("rb") as stream:
            yield from _lines(stream)
    except OSError as error:
        raise ConfigError([f"{file}: {error.strerror}"]) from error


def _lines(stream: Any) -> Iterator[bytes]:
    for line in stream:
        yield line.removesuffix(b"\n")


def write(value: Any) -> None:
    """One JSON value a line, on stdout."""
    write_line(msgspec.json.encode(value))


def write_line(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")


def complain(value: Any) -> None:
    """One JSON value a line, on stderr."""
    sys.stderr.write(msgspec.json.encode(value).decode() + "\n")
