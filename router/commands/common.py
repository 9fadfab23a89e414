"""What several commands share: where lines come from, and how a configuration is loaded."""

from __future__ import annotations

import argparse
import difflib
import io
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from hookbus.router import build, build_bus
from hookbus.router.configuration import config_file, plan
from hookbus.router.configuration.config import Config
from hookbus.router.errors import ConfigError
from hookbus.router.replays.letters import moment

_STDIN: Final = Path("-")
_AT_ONCE: Final = 1 << 16
"""Bytes: what a pipe holds."""


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
    found = plan.problems(config, build.event_types(), build_bus.compressions(config))
    if found:
        raise ConfigError(found)
    return config


def lines(file: Path | None) -> Iterator[bytes]:
    """The lines of the input without their ends, one at a time. Raises ConfigError if there is no
    such file."""
    with _opened(file) as stream:
        for line in stream:
            yield line.removesuffix(b"\n")


def batches(file: Path | None, most: int) -> Iterator[list[bytes]]:
    """As `lines`, as many at once as are there, and no more than `most`."""
    rest = b""
    with _opened(file) as stream:
        while data := stream.read1(_AT_ONCE):
            *whole, rest = (rest + data).split(b"\n")
            for start in range(0, len(whole), most):
                yield whole[start : start + most]
        if rest:
            yield [rest]


def _opened(file: Path | None) -> io.BufferedReader:
    """Standard input is opened anew: a thread that waits in `sys.stdin` would keep the process from
    ending."""
    if file is None or file == _STDIN:
        return open(0, "rb", closefd=False)
    try:
        return file.open("rb")
    except OSError as error:
        raise ConfigError([f"{file}: {error.strerror}"]) from error


def write(value: Any) -> None:
    """One JSON value a line, on stdout."""
    write_line(msgspec.json.encode(value))


def write_line(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    if sys.stdout.line_buffering:  # a terminal
        sys.stdout.buffer.flush()


def unknown(option: str, name: str, what: str, known: Iterable[str]) -> ConfigError:
    """The error for a name that the configuration doesn't have."""
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return ConfigError([f"{option} {name}: there is no such {what}{hint}"])


def complain(value: Any) -> None:
    """One JSON value a line, on stderr."""
    sys.stderr.write(msgspec.json.encode(value).decode() + "\n")
