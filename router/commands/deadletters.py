"""`hookbus deadletters`; see `hookbus.router.usage.deadletters`."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from typing import Any, Final

from hookbus.router import build
from hookbus.router.commands.common import complain, period, write
from hookbus.router.commands.open_bus import opened, reading
from hookbus.router.commands.registered import load_registered
from hookbus.router.configuration.config import Config
from hookbus.router.errors import ConfigError
from hookbus.router.replays import build_replay
from hookbus.router.replays.letters import Wanted, read_letter, shown
from hookbus.router.replays.replay import Replay
from hookbus.router.replays.replayed import Replayed

EXIT_FINE: Final = 0
EXIT_REFUSED: Final = 1


def execute(options: argparse.Namespace) -> int:
    since, until = period(options)
    wanted = Wanted(
        reason=options.reason, sink=options.sink, stage=options.stage, since=since, until=until
    )
    config = load_registered(options, lambda backend: None).config
    if config.dead_letters is None:
        raise ConfigError(["dead_letters: missing"])
    if options.action == "list":
        asyncio.run(_list(config, wanted, counts=options.counts))
        return EXIT_FINE
    return asyncio.run(_replay(config, wanted, options))


async def _list(config: Config, wanted: Wanted, *, counts: bool) -> None:
    kinds: Counter[tuple[tuple[str, str], ...]] = Counter()
    unreadable = 0
    async with reading(config) as bus:
        async for record in bus.scan(build.dead_letters(config).topic, follow=False):
            letter = read_letter(record)
            if letter is None:
                unreadable += 1
            elif wanted.takes(letter):
                told = shown(letter)
                kinds[_kind(told)] += 1
                if not counts:
                    write(told)
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
    writing = opened(config, build_replay.topics(config), changelogs)
    async with reading(config) if options.dry_run else writing as bus:
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
    write({"dry_run": options.dry_run, **tally.summary()})
    return EXIT_REFUSED if tally.refused or tally.unreadable else EXIT_FINE
