"""Puts the parts of a replay together. Nothing is opened here."""

from __future__ import annotations

import functools

from hookbus.router import build, build_bus, redaction
from hookbus.router.configuration.config import Config
from hookbus.router.replays.attempts import replay_topic
from hookbus.router.replays.regate import Regate
from hookbus.router.replays.replay_desk import Recipient, ReplayDesk


def changelogs(config: Config) -> dict[str, str]:
    """Changelog of the dead letters that have been replayed -> the dead-letter topic."""
    return {f"{config.bus.group}.replayed": build.dead_letters(config).topic}


def topics(config: Config) -> list[str]:
    """Where dead letters and their records are, and where they are sent: not every route's."""
    subscribed = [topic for name in config.sinks for topic in build_bus.sink_topics(config, name)]
    named = [build.dead_letters(config).topic, *build_bus.ingress_topics(config), *subscribed]
    return list(dict.fromkeys(named))


def regate(config: Config) -> Regate:
    return Regate(
        decoder=build.decoder(config),
        correlator=build.correlator(),
        copier=build.copier(redaction.redactor(config, build_bus.read_secret)),
        formatter=build.formatter(),
        routes=tuple(build.route_plan(name, route) for name, route in config.routes.items()),
        memory=functools.partial(build.memory, config),
    )


def replay_desk(config: Config, max_attempts: int) -> ReplayDesk:
    return ReplayDesk(
        regate=regate(config),
        ingress=frozenset(build_bus.ingress_topics(config)),
        recipients={
            name: Recipient(frozenset(sink.topics), replay_topic(config.bus.group, name))
            for name, sink in config.sinks.items()
        },
        failures_topic=config.failures.topic if config.failures else None,
        max_attempts=max_attempts,
        largest=build_bus.largest(config),
    )
