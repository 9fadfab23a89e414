"""What a shell is told while a command line is typed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import argcomplete
from argcomplete.completers import FilesCompleter, SuppressCompleter


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell that asks, and exit. File names are offered where a file is meant, and
    nothing where nobody knows what is."""
    files = FilesCompleter()
    for option in _options(parser):
        if option.type is Path:
            option.completer = files  # type: ignore[attr-defined]  # where argcomplete looks
    argcomplete.autocomplete(parser, default_completer=SuppressCompleter())


def _options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Those of all commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _options(command)
