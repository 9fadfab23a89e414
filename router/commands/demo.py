"""Show everything on the embedded bus, in a temporary folder.

Sends a recorded agent session to four consumers, breaks one of them half-way, and shows what each
received and how the failure was audited. Exits with 0 only if everything that it shows is so.
"""

from __future__ import annotations

import argparse
import asyncio

from hookbus.router.demo import scenario


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--keep", action="store_true", help="leave it running, until Ctrl-C, and keep the folder"
    )


def execute(options: argparse.Namespace) -> int:
    return asyncio.run(scenario.play(keep=options.keep))
