"""The parser of command lines, made from the usages of all commands."""

from __future__ import annotations

import argparse
import difflib
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

from hookbus.router.usage.contract import Usage
from hookbus.router.usage.page import epilog, filled

_WIDEST: Final = 100
_DESCRIPTION: Final = (
    "Routes agent hook events to every consumer, each at the capture level it may see.\n"
    "Each command has a page of its own: hookbus COMMAND --help."
)


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations, which a later option would break, and suggests what is near to a
    word that it doesn't know."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Formatter, **settings)

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """The options of a command line, with its `usage`. Exits with 2 for a wrong one, and with
        0 after having printed help or version."""
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            asked: Parser = options.parser
            asked.refuse(unknown)
        return options

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """See ArgumentParser; the help may go to a reader that has gone away."""
        sys.stdout.flush()
        super().exit(status, message)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Exit because of arguments that nothing took."""
        hints = [_near(word.partition("=")[0], self._option_string_actions) for word in unknown]
        self.error(f"unrecognized arguments: {' '.join(unknown)}{next(filter(None, hints), '')}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            hint = _near(str(value), choices) or f"; choose from {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size().columns, _WIDEST) - 2
        super().__init__(prog, max_help_position=28, width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return filled(text, width)


class _Version(argparse.Action):
    """Looks the version up when it is asked for, which takes longer than all the rest."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"hookbus {version('hookbus')}")
        parser.exit()


def make(commands: Iterable[Usage]) -> Parser:
    """The parser of all command lines."""
    parser = Parser(prog="hookbus", description=_DESCRIPTION, epilog=epilog(None))
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.set_defaults(parser=parser)
    _add(parser, "command", commands)
    return parser


def _add(parser: argparse.ArgumentParser, dest: str, usages: Iterable[Usage]) -> None:
    names = parser.add_subparsers(
        required=True, dest=dest, metavar=dest.upper(), parser_class=Parser, title=f"{dest}s"
    )
    for usage in usages:
        command = names.add_parser(
            usage.name,
            help=usage.summary,
            description=f"{usage.summary}\n{usage.text}",
            epilog=epilog(usage),
        )
        usage.arguments(command)
        command.set_defaults(parser=command, usage=usage)
        if usage.actions:
            _add(command, "action", usage.actions)


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
