"""The bus and the journal that a configuration names, and the topics on them. Nothing is opened.

Only the bus that is asked for is imported: most commands need none, and would start late."""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from hookbus.router.buses.kafka_settings import KafkaSettings, NewTopics
from hookbus.router.configuration.config import (
    BusConfig,
    Config,
    Failures,
)
from hookbus.router.configuration.units import Secret
from hookbus.router.errors import StartupError
from hookbus.router.replays.attempts import replay_topic
from hookbus.router.types import Bus

if TYPE_CHECKING:
    from hookbus.router.buses.sqlite import SqliteBus

_JOURNAL_RETENTION = 30 * 86400.0
"""Seconds that forwarded failures stay readable in the journal."""
_READ_AHEAD = 2000
"""Records; enough to process one batch while the next is fetched."""


def bus(config: Config, worker: int | None = None) -> Bus:
    """`worker` is the number of a process among those that share the configuration."""
    if config.bus.sqlite is not None:
        return _sqlite(config.bus)
    return _kafka(config.bus, "" if worker is None else f".{worker}")


def _sqlite(settings: BusConfig) -> Bus:
    from hookbus.router.buses.sqlite import SqliteBus

    sqlite = settings.sqlite
    if sqlite is None:
        raise ValueError("not a configuration of the embedded bus")
    new = settings.create_topics
    return SqliteBus(
        sqlite.path,
        partitions=new.partitions if new else 1,
        create_topics=new is not None,
        retention=sqlite.retention,
        max_message=sqlite.max_message,
        clock=time.time,
    )


def _kafka(settings: BusConfig, suffix: str) -> Bus:
    from hookbus.router.buses.kafka import KafkaBus

    kafka, new = settings.kafka, settings.create_topics
    if kafka is None:
        raise ValueError("not a configuration of Kafka")
    tls, sasl = kafka.tls, kafka.sasl
    return KafkaBus(
        KafkaSettings(
            bootstrap_servers=kafka.bootstrap_servers,
            client_id=kafka.client_id,
            protocol=kafka.security,
            mechanism=sasl.mechanism if sasl else "PLAIN",
            username=sasl.username if sasl else None,
            password=read_secret(sasl.password, "bus.kafka.sasl.password") if sasl else None,
            ca_file=tls.ca_file if tls else None,
            cert_file=tls.cert_file if tls else None,
            key_file=tls.key_file if tls else None,
            session_timeout=kafka.session_timeout,
            request_timeout=kafka.request_timeout,
            max_message_bytes=kafka.max_message,
            compression=kafka.compression,
            batch_bytes=kafka.batch_size,
            linger=kafka.linger,
            fetch_min_bytes=kafka.fetch_min_bytes,
            fetch_max_wait=kafka.fetch_max_wait,
            fetch_max_bytes=kafka.fetch_max_bytes,
            max_partition_fetch_bytes=kafka.max_partition_fetch_bytes,
            read_ahead=max(_READ_AHEAD, 2 * settings.max_poll_records),
            group_instance_id=_instance(kafka.group_instance_id, suffix),
            exactly_once=settings.delivery == "exactly-once",
        ),
        create_topics=NewTopics(new.partitions, new.replication) if new else None,
    )


def _instance(name: Secret | None, suffix: str) -> str | None:
    """The name for a static membership. Raises StartupError unless Kafka takes it."""
    if name is None:
        return None
    found = read_secret(name, "bus.kafka.group_instance_id") + suffix
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", found):
        raise StartupError("bus.kafka.group_instance_id: not 1 to 249 letters, digits or . _ -")
    return found


def journal_bus(config: Config) -> SqliteBus:
    """A bus of its own, so that it works when the other one doesn't."""
    from hookbus.router.buses.sqlite import SqliteBus

    return SqliteBus(
        failures(config).journal, partitions=1, retention=_JOURNAL_RETENTION, clock=time.time
    )


def topics(
    config: Config, *, router: bool = True, sinks: Collection[str] | None = None
) -> list[str]:
    """Every topic that the router and these sinks (by default all) read or write, changelogs left
    out; in order, without repetition."""
    named = []
    if router:
        named += [*ingress_topics(config), *(route.topic for route in config.routes.values())]
    for name in config.sinks if sinks is None else sinks:
        target = config.sinks[name].topic
        named += [*sink_topics(config, name), *([target] if target else [])]
    named += [config.failures.topic] if config.failures else []
    named += [config.dead_letters.topic] if config.dead_letters else []
    return list(dict.fromkeys(named))


def sink_topics(config: Config, name: str) -> list[str]:
    """What a sink subscribes to: its topics, and what is replayed for it alone."""
    return [*config.sinks[name].topics, replay_topic(config.bus.group, name)]


def ingress_topics(config: Config) -> list[str]:
    return [topic for source in config.ingress.values() for topic in source.topics]


def changelogs(config: Config) -> dict[str, str]:
    """Changelog of pending requests -> the ingress topic that it is partitioned like."""
    return {f"{config.bus.group}.pending.{topic}": topic for topic in ingress_topics(config)}


def ingress_of(config: Config) -> dict[str, str]:
    """Ingress topic -> the name of its ingress."""
    return {topic: name for name, source in config.ingress.items() for topic in source.topics}


def overlap(config: Config) -> bool:
    """Whether the router should go on while the bus settles. The embedded bus works in this process
    and would have to share Python's lock with it, while every other process waits for the file's
    one writer."""
    return config.bus.kafka is not None


def compressions(config: Config) -> frozenset[str]:
    """Those that Kafka's client can do here; none where the bus is another."""
    if config.bus.kafka is None:
        return frozenset()
    from hookbus.router.buses.kafka_codecs import codecs

    return codecs()


def largest(config: Config) -> int:
    """The longest value that the bus takes, in bytes."""
    if config.bus.kafka is not None:
        return config.bus.kafka.max_message
    return config.bus.sqlite.max_message if config.bus.sqlite is not None else 0


def failures(config: Config) -> Failures:
    if config.failures is None:
        raise StartupError("failures: missing")
    return config.failures


def read_secret(secret: Secret, at: str) -> str:
    """A secret that is needed now. Raises StartupError that names where it is asked for."""
    try:
        return secret.read()
    except (OSError, KeyError, UnicodeDecodeError) as error:
        where = f"environment variable {secret.env}" if secret.env else f"file {secret.file}"
        raise StartupError(f"{at}: {where} can't be read") from error
