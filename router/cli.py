"""The command line.

Exit codes: 0 fine, 1 some input was refused, 2 usage or configuration, 3 start-up failure, 4 a
fatal fault while running. JSON goes to stdout, one value a line; diagnostics go to stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from types import ModuleType
from typing import Final

from hookbus.router import logs
from hookbus.router.commands import (
    bench,
    check,
    deadletters,
    demo,
    downlevel,
    failures,
    filter_,
    plan,
    publish,
    redact,
    run,
    schema,
    tail,
)
from hookbus.router.errors import (
    BusFatal,
    BusUnavailable,
    ConfigError,
    HookbusError,
    OutputTooLarge,
)

EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_STARTUP: Final = 3
EXIT_FATAL: Final = 4

_COMMANDS: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("demo", demo),
    ("run", run),
    ("publish", publish),
    ("tail", tail),
    ("deadletters", deadletters),
    ("failures", failures),
    ("plan", plan),
    ("check", check),
    ("downlevel", downlevel),
    ("filter", filter_),
    ("redact", redact),
    ("schema", schema),
    ("bench", bench),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = _parser().parse_args(arguments)
    logs.configure("error")  # `run` says more; what the others have to say is their output
    try:
        return int(options.execute(options))
    except ConfigError as error:
        return _complain(error, EXIT_USAGE)
    except OutputTooLarge as error:
        return _complain(error, EXIT_REFUSED)
    except (BusFatal, BusUnavailable) as error:
        return _complain(error, EXIT_FATAL)
    except HookbusError as error:
        return _complain(error, EXIT_STARTUP)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away, which is its right
        return 0
    except KeyboardInterrupt:
        return 130


def _complain(error: Exception, code: int) -> int:
    print(error, file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hookbus",
        description="Routes agent hook events to every consumer, each at the capture level it may "
        "see.",
        epilog="Exit codes: 0 fine, 1 some input was refused, 2 usage or configuration, 3 start-up "
        "failure, 4 a fatal fault while running.",
    )
    parser.add_argument("--version", action="version", version=f"hookbus {version('hookbus')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in _COMMANDS:
        summary = (module.__doc__ or "").strip().splitlines()[0]
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        module.arguments(command)
        command.set_defaults(execute=module.execute)
    return parser
