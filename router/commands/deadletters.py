"""List dead letters, or replay what they are about.

`list` prints one JSON object a dead letter, with its own place in the dead-letter topic (`letter`:
partition/offset) and when it was written; the bytes that a topic at `full` holds are not shown.
`--counts` prints their numbers by stage, reason, sink and route instead.

`replay` sends refused input to its ingress topic again, as it was, and what a sink gave up to that
sink alone, cut down to what the route of its topic allows now. What one route could not write goes
through all routes again, with the same identity. What has been replayed is remembered and not sent
again; a dry run sends and remembers nothing. A record that was replayed
`--max-attempts` times already stays where it is. What can't be replayed is named on stderr, with
the progress, one JSON object a line; the summary goes to stdout. Exits with 1 if anything that was
asked for could not be replayed.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from typing import Any, Final, get_args

from hookbus.codecs.verdict import Code
from hookbus.policies.faults import Reason
from hookbus.router import build, build_bus, build_replay
from hookbus.router.commands.common import add_config, add_period, complain, period, write
from hookbus.router.commands.registered import add_registration, load_registered
from hookbus.router.config import Config
from hookbus.router.letters import Wanted, read_letter, shown
from hookbus.router.replay import Replay
from hookbus.router.replayed import Replayed

EXIT_FINE: Final = 0
EXIT_REFUSED: Final = 1


def arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="list|replay")
    listing = actions.add_parser("list", help="print them", description="Print dead letters.")
    replaying = actions.add_parser(
        "replay", help="send again what they are about",
        description="Send again what dead letters are about.",
    )  # fmt: skip
    for action in (listing, replaying):
        add_config(action)
        add_registration(action)
        _add_filters(action)
    listing.add_argument(
        "--counts", action="store_true", help="print how many there are of each kind"
    )
    replaying.add_argument("--dry-run", action="store_true", help="say what would be done")
    replaying.add_argument(
        "--rate", type=_rate, metavar="N", help="at most N records a second (default: no limit)"
    )
    replaying.add_argument(
        "--max-attempts", type=int, default=3, metavar="N",
        help="leave out records that were replayed N times already (default: 3)",
    )  # fmt: skip


def _add_filters(command: argparse.ArgumentParser) -> None:
    reasons = sorted({*get_args(Code), *get_args(Reason)})
    command.add_argument("--reason", choices=reasons, metavar="REASON", help="only with this one")
    command.add_argument("--sink", metavar="NAME", help="only what this sink gave up")
    command.add_argument("--stage", choices=["router", "sink"], help="only from there")
    add_period(command)


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate < float("inf"):
        raise ValueError
    return rate


def execute(options: argparse.Namespace) -> int:
    since, until = period(options)
    wanted = Wanted(
        reason=options.reason, sink=options.sink, stage=options.stage, since=since, until=until
    )
    config = load_registered(options, lambda backend: None).config
    if options.action == "list":
        asyncio.run(_list(config, wanted, counts=options.counts))
        return EXIT_FINE
    return asyncio.run(_replay(config, wanted, options))


async def _list(config: Config, wanted: Wanted, *, counts: bool) -> None:
    kinds: Counter[tuple[tuple[str, str], ...]] = Counter()
    unreadable = 0
    bus = build_bus.bus(config)
    try:
        await bus.open([])  # a topic that is missing is not made by looking at it
        async for record in bus.scan(build.dead_letters(config).topic, follow=False):
            letter = read_letter(record)
            if letter is None:
                unreadable += 1
            elif wanted.takes(letter):
                told = shown(letter)
                kinds[_kind(told)] += 1
                if not counts:
                    write(told)
    finally:
        await bus.close()
    if counts:
        for kind, count in sorted(kinds.items()):
            write({**dict(kind), "count": count})
    if unreadable:
        complain({"unreadable": unreadable})


def _kind(told: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    members = ("stage", "reason", "sink", "route")
    return tuple((member, told[member]) for member in members if member in told)


async def _replay(config: Config, wanted: Wanted, options: argparse.Namespace) -> int:
    topic = build.dead_letters(config).topic
    changelogs = build_replay.changelogs(config)
    (changelog,) = changelogs
    bus = build_bus.bus(config)
    try:
        if options.dry_run:
            await bus.open([])
        else:
            await bus.open(build_bus.topics(config), changelogs)
        done = Replayed(bus, changelog, topic)
        await done.load()
        replay = Replay(
            bus,
            build_replay.replay_desk(config, options.max_attempts),
            done,
            dry_run=options.dry_run,
            rate=options.rate,
            clock=time.monotonic,
            tell=complain,
        )
        tally = await replay.run(topic, wanted)
    finally:
        await bus.close()
    write({"dry_run": options.dry_run, **tally.summary()})
    return EXIT_REFUSED if tally.refused or tally.unreadable else EXIT_FINE
