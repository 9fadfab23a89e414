"""`hookbus completion`."""

from __future__ import annotations

import argparse

from argcomplete.shell_integration import shellcode


def execute(options: argparse.Namespace) -> int:
    print(shellcode(["hookbus"], shell=options.shell))
    return 0
