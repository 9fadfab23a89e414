"""What is known of a command before it is run: enough for its help, its completion and its man-like
page. Nothing here imports what the command needs to work, so that all of that is quick."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

FINE: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
STARTUP: Final = 3
FATAL: Final = 4
INTERRUPTED: Final = 130

EXITS: Final[Mapping[int, str]] = {
    FINE: "Everything that was asked for was done.",
    REFUSED: "Some input was refused; what was not is done.",
    USAGE: "The command line or the configuration is wrong, which stderr says; nothing was done.",
    STARTUP: "It could not start, for example because topics or a secret are missing.",
    FATAL: "A fault while it ran that it can't go on from, such as a bus that refuses it.",
    INTERRUPTED: "Ctrl-C.",
}
"""What an exit code means if a command says nothing else."""

CONFIGURED: Final = (FINE, USAGE, STARTUP, FATAL, INTERRUPTED)
"""The exit codes of commands that work on a bus."""


class Example(NamedTuple):
    """A command line as one would type it, and what it is for."""

    line: str
    does: str


class Usage(NamedTuple):
    """One command. `text` has a paragraph a line; `module` is where `execute(options)` is, and
    `exits` maps its exit codes to their meaning where it differs from `EXITS`. A command with
    `actions` is always one of them; it has no arguments of its own. Signals that a command `obeys`
    wait until it can."""

    name: str
    module: str
    summary: str
    text: str
    arguments: Callable[[argparse.ArgumentParser], None]
    exits: Mapping[int, str | None]
    examples: tuple[Example, ...]
    files: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    actions: tuple[Usage, ...] = ()
    obeys: frozenset[signal.Signals] = frozenset()


def exits(*codes: int, **told: str) -> Mapping[int, str | None]:
    """The usual meanings of these codes; `_1="..."` gives one of its own."""
    own = {int(code.removeprefix("_")): text for code, text in told.items()}
    return dict(sorted({**dict.fromkeys(codes), **own}.items()))
