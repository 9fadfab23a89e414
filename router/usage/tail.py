"""The usage of `hookbus tail`."""

from __future__ import annotations

import argparse

from hookbus.router.usage.contract import CONFIGURED, Example, Usage, exits
from hookbus.router.usage.names import completing, topics
from hookbus.router.usage.options import CONFIG_FILE, SECRETS, add_config


def arguments(command: argparse.ArgumentParser) -> None:
    add_config(command)
    topic = command.add_argument("--topic", required=True, help="any topic of the bus; required")
    completing(topic, topics)
    command.add_argument(
        "--follow", action="store_true",
        help="wait for more at the end, until Ctrl-C (default: stop there)",
    )  # fmt: skip


TAIL = Usage(
    "tail",
    "hookbus.router.commands.tail",
    "Print the values of a topic's records from the start, one a line.",
    "It belongs to no consumer group, so nobody else misses what it reads. Line breaks within a "
    "value are shown as spaces.",
    arguments,
    exits(*CONFIGURED),
    (
        Example(
            "hookbus tail -c hookbus.yaml --topic hookbus.dashboard",
            "See the copies that a route has written",
        ),
        Example(
            "hookbus tail -c hookbus.yaml --topic hookbus.failures --follow",
            "Watch failures as they happen",
        ),
    ),
    files=CONFIG_FILE,
    environment=SECRETS,
)
