"""The usage of `hookbus demo`."""

from __future__ import annotations

import argparse

from hookbus.router.usage.contract import Example, Usage, exits


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--keep", action="store_true",
        help="leave it running until Ctrl-C, and keep the folder (default: stop and remove it)",
    )  # fmt: skip


DEMO = Usage(
    "demo",
    "hookbus.router.commands.demo",
    "Show everything on the embedded bus, in a temporary folder.",
    "Sends a recorded agent session to four consumers, breaks one of them half-way, and shows what "
    "each received and how the failure was audited. It needs no broker and no network, and takes a "
    "few seconds.",
    arguments,
    exits(2, 130, _0="Everything that it showed really happened.", _1="Something did not."),
    (Example("hookbus demo", "See what hookbus does"),),
    files={"hookbus-demo-*": "Its folder, in the system's folder for temporary files."},
)
