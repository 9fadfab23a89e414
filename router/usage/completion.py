"""The usage of `hookbus completion`."""

from __future__ import annotations

import argparse
from typing import Final

from hookbus.router.usage.contract import FINE, USAGE, Example, Usage, exits

SHELLS: Final = ("bash", "zsh", "fish")


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "shell", choices=SHELLS, metavar="SHELL", help=f"the shell: {', '.join(SHELLS)}"
    )


COMPLETION = Usage(
    "completion",
    "hookbus.router.commands.completion",
    "Print what has a shell complete hookbus's command lines.",
    "Commands, options, their values, file names, and the names of sinks, ingresses and topics in "
    "the configuration that -c gives.",
    arguments,
    exits(FINE, USAGE),
    (
        Example('eval "$(hookbus completion bash)"', "bash: a line for ~/.bashrc"),
        Example('eval "$(hookbus completion zsh)"', "zsh: a line for ~/.zshrc, after compinit"),
        Example(
            "hookbus completion fish > ~/.config/fish/completions/hookbus.fish", "fish: run it once"
        ),
    ),
)
