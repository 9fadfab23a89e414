"""The usage of `hookbus filter`."""

from __future__ import annotations

import argparse

from hookbus.router.usage.contract import FINE, INTERRUPTED, Example, Usage, exits
from hookbus.router.usage.options import add_input


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--match", required=True, metavar="JSON",
        help="the filter, an object as in a route's `match`: all of its members must match, a list "
        "means any of its values, {} matches everything; required",
    )  # fmt: skip
    add_input(command)


FILTER = Usage(
    "filter",
    "hookbus.router.commands.filter_",
    "Print the events that a route filter matches.",
    "AHP events have `type` (such as tool.before, or a family tool.*), `source`, `harness.name` "
    "and `session.id`; AEP events their attributes. The events are not validated; what is no JSON "
    "object matches nothing.",
    arguments,
    exits(FINE, INTERRUPTED, _2="The filter is outside the grammar (invalid-filter), or the "
          "command line is wrong."),
    (
        Example(
            """hookbus filter --match '{"type": "tool.*"}' session.jsonl""",
            "Events of one family",
        ),
        Example(
            """hookbus filter --match '{"type": ["session.start", "session.end"]}' session.jsonl""",
            "Of either type",
        ),
    ),
)  # fmt: skip
