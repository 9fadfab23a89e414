"""The command line: parses it, runs one command, and turns what it raises into an exit code.

JSON goes to stdout, one value a line; diagnostics go to stderr. What the exit codes mean is in
`hookbus.router.usage.contract`. Only the command that is asked for is imported, so that help and
completion are quick.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from hookbus.router.errors import (
    BusFatal,
    BusUnavailable,
    ConfigError,
    HookbusError,
    OutputTooLarge,
)
from hookbus.router.usage.contract import FATAL, FINE, INTERRUPTED, REFUSED, STARTUP, USAGE
from hookbus.router.usage.every import COMMANDS
from hookbus.router.usage.parser import make


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _open_missing()
    parser = make(COMMANDS)
    if "_ARGCOMPLETE" in os.environ:
        from hookbus.router.usage.completer import complete

        complete(parser)
    try:
        return _run(parser.parse(arguments))
    except ConfigError as error:
        return _complain(error, USAGE)
    except OutputTooLarge as error:
        return _complain(error, REFUSED)
    except (BusFatal, BusUnavailable) as error:
        return _complain(error, FATAL)
    except HookbusError as error:
        return _complain(error, STARTUP)
    except BrokenPipeError:
        _drop_output()  # the reader of our output went away, which is its right
        return FINE
    except OSError as error:
        _drop_output()
        return _complain(f"{type(error).__name__}: {error.strerror or 'no reason is given'}", FATAL)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(options: argparse.Namespace) -> int:
    from hookbus.router.telemetry import logs

    logs.configure("error")  # `run` says more; what the others have to say is their output
    before = signal.pthread_sigmask(signal.SIG_BLOCK, options.usage.obeys)
    try:
        code = int(import_module(options.usage.module).execute(options))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    sys.stdout.flush()
    return code


def _open_missing() -> None:
    """A process may be started without standard output or error; then it goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for good


def _drop_output() -> None:
    """What is still to be written, when the interpreter ends, goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(error: Exception | str, code: int) -> int:
    print(error, file=sys.stderr)
    return code
