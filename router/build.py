"""Puts the parts together that a configuration names. Nothing is opened here."""

from __future__ import annotations

import functools
import re
import sys
import time
from collections.abc import Callable

from hookbus.codecs.aep_from_ahp import ToAep
from hookbus.codecs.aep_stream import Streams
from hookbus.codecs.decode import Decoder
from hookbus.codecs.elicitation import Bodies
from hookbus.codecs.strict import Limits
from hookbus.policies.aep_capture import AepRewriter
from hookbus.policies.capture import Rewriter, View
from hookbus.policies.copies import Copier
from hookbus.policies.correlation import PendingRequests
from hookbus.policies.match import compile_filter
from hookbus.policies.redaction.contract import Redacts
from hookbus.policies.selection import Selection
from hookbus.router import redaction
from hookbus.router.attempts import replay_topic
from hookbus.router.buses.kafka import KafkaBus
from hookbus.router.buses.kafka_settings import KafkaSettings, NewTopics
from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.config import (
    BusConfig,
    Config,
    Correlation,
    DeadLetters,
    Failures,
    HttpBackend,
    Route,
    SinkConfig,
)
from hookbus.router.correlation import Correlator
from hookbus.router.dead_letters import DeadLetterOffice
from hookbus.router.errors import StartupError
from hookbus.router.formats import Formatter
from hookbus.router.memory import Memory
from hookbus.router.pipeline import Pipeline, RoutePlan
from hookbus.router.sink_loop import Terms
from hookbus.router.sinks.contract import Sink
from hookbus.router.sinks.file import FileSink
from hookbus.router.sinks.http import HttpSink
from hookbus.router.sinks.stdout import StdoutSink
from hookbus.router.sinks.topic import TopicSink
from hookbus.router.types import Bus
from hookbus.router.units import Secret
from hookbus.schemas import loader

_STREAM_EVENTS = 10_000
"""How many AEP events of a partition are remembered, to tell which break the rules of streams."""
_STREAM_EVENTS_OF_INPUT = 1_000_000
_JOURNAL_RETENTION = 30 * 86400.0
"""Seconds that forwarded failures stay readable in the journal."""


def event_types() -> tuple[str, ...]:
    """The AHP event types that hookbus knows."""
    return loader.event_types(loader.load())


def known_types() -> tuple[str, ...]:
    """Those, and the registered types of AEP."""
    return (*event_types(), *loader.aep_types(loader.load_aep()))


def copier(redactor: Redacts | None = None) -> Copier:
    schemas = loader.load_aep()
    definitions = schemas["definitions"]
    payloads = {kind: loader.payload(schemas, kind) for kind in loader.aep_types(schemas)}
    return Copier(
        rewriter(redactor),
        AepRewriter(payloads, lambda reference: definitions[reference.rpartition("/")[2]]),
        redactor,
    )


def formatter() -> Formatter:
    return Formatter(ToAep(Bodies(loader.load_elicitation())), rewriter())


def rewriter(redactor: Redacts | None = None) -> Rewriter:
    schemas = loader.load()
    definitions = schemas["definitions"]
    return Rewriter(
        {name: definitions[name] for name in loader.event_types(schemas)},
        lambda reference: definitions[reference.rpartition("/")[2]],
        redactor,
    )


def decoder(config: Config) -> Decoder:
    return Decoder(Limits(max_bytes=config.limits.max_bytes, max_depth=config.limits.max_depth))


def correlator() -> Correlator:
    return Correlator(Bodies(loader.load_elicitation()))


def memory(config: Config) -> Memory:
    """What is remembered of a partition, nothing yet."""
    return _memory(config.correlation, _STREAM_EVENTS)


def memory_of_input() -> Memory:
    """What is remembered of the lines that a command reads."""
    return _memory(Correlation(), _STREAM_EVENTS_OF_INPUT)


def _memory(bounds: Correlation, events: int) -> Memory:
    pending = PendingRequests(most=bounds.max_requests, age=int(bounds.max_age * 1000))
    return Memory(pending, Streams(events))


def bus(config: Config) -> Bus:
    return _sqlite(config.bus) if config.bus.sqlite is not None else _kafka(config.bus)


def _sqlite(settings: BusConfig) -> SqliteBus:
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


def _kafka(settings: BusConfig) -> KafkaBus:
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
            group_instance_id=_instance(kafka.group_instance_id),
            exactly_once=settings.delivery == "exactly-once",
        ),
        create_topics=NewTopics(new.partitions, new.replication) if new else None,
    )


def _instance(name: Secret | None) -> str | None:
    """The name for a static membership. Raises StartupError unless Kafka takes it."""
    if name is None:
        return None
    found = read_secret(name, "bus.kafka.group_instance_id")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", found):
        raise StartupError("bus.kafka.group_instance_id: not 1 to 249 letters, digits or . _ -")
    return found


def journal_bus(config: Config) -> SqliteBus:
    """A bus of its own, so that it works when the other one doesn't."""
    return SqliteBus(
        failures(config).journal, partitions=1, retention=_JOURNAL_RETENTION, clock=time.time
    )


def topics(config: Config) -> list[str]:
    """Every topic that the configuration names, in order, without repetition."""
    named = [*ingress_topics(config), *(route.topic for route in config.routes.values())]
    for name, sink in config.sinks.items():
        named += [*sink_topics(config, name), *([sink.topic] if sink.topic else [])]
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


def pipeline(config: Config, judge: Decoder) -> Pipeline:
    return Pipeline(
        judge,
        correlator(),
        copier(redaction.redactor(config, read_secret)),
        formatter(),
        tuple(route_plan(name, route) for name, route in config.routes.items()),
        office(config),
        levels={
            topic: source.capture for source in config.ingress.values() for topic in source.topics
        },
        changelogs={topic: changelog for changelog, topic in changelogs(config).items()},
        failures_topic=config.failures.topic if config.failures else None,
        largest=largest(config),
    )


def route_plan(name: str, route: Route) -> RoutePlan:
    return RoutePlan(
        name,
        route.topic,
        compile_filter(route.match),
        route.capture,
        view(route),
        route.format,
        route.redact,
    )


def view(route: Route) -> View:
    selection = None if route.content is None else Selection.of(route.content)
    return View(selection, route.include_native, route.include_digests)


def office(config: Config) -> DeadLetterOffice:
    replays = frozenset(replay_topic(config.bus.group, name) for name in config.sinks)
    return DeadLetterOffice(dead_letters(config), largest(config), replays)


def dead_letters(config: Config) -> DeadLetters:
    if config.dead_letters is None:
        raise StartupError("dead_letters: missing")
    return config.dead_letters


def failures(config: Config) -> Failures:
    if config.failures is None:
        raise StartupError("failures: missing")
    return config.failures


def largest(config: Config) -> int:
    """The longest value that the bus takes, in bytes."""
    if config.bus.kafka is not None:
        return config.bus.kafka.max_message
    return config.bus.sqlite.max_message if config.bus.sqlite is not None else 0


def terms(config: Config, name: str) -> Terms:
    sink = config.sinks[name]
    return Terms(
        name=name,
        policy=sink.policy,
        timeout=sink.timeout,
        deadline=sink.deadline,
        first_delay=sink.retry.initial,
        longest_delay=sink.retry.maximum,
        forward=name not in failures(config).journal_only,
    )


def sink(name: str, settings: SinkConfig, source: Bus) -> Sink:
    """The sink for the one backend that the settings name."""
    if settings.http is not None:
        if settings.http.bearer is not None:
            read_secret(settings.http.bearer, f"sinks.{name}.http.bearer")  # or refuse to start
        return _http(name, settings.http)
    if settings.file is not None:
        file = settings.file
        return FileSink(file.path, rotate_bytes=file.rotate, rotate_keep=file.keep)
    if settings.topic is not None:
        return TopicSink(source, settings.topic)
    return StdoutSink(sys.stdout.buffer)


def _http(name: str, http: HttpBackend) -> HttpSink:
    return HttpSink(
        name,
        http.url,
        bearer=_reader(http.bearer),
        headers=http.headers,
        ca_file=http.ca_file,
        cert_file=http.cert_file,
        key_file=http.key_file,
        allow_private=http.allow_private,
        allow_plain_http=http.allow_plain_http,
    )


def _reader(secret: Secret | None) -> Callable[[], str] | None:
    return None if secret is None else functools.partial(secret.read)


def read_secret(secret: Secret, at: str) -> str:
    """A secret that is needed now. Raises StartupError that names where it is asked for."""
    try:
        return secret.read()
    except (OSError, KeyError, UnicodeDecodeError) as error:
        where = f"environment variable {secret.env}" if secret.env else f"file {secret.file}"
        raise StartupError(f"{at}: {where} can't be read") from error
