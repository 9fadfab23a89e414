"""The pure middle of the router, put together as a configuration says."""

from __future__ import annotations

from hookbus.codecs.aep_from_ahp import ToAep
from hookbus.codecs.aep_stream import Streams
from hookbus.codecs.decode import Decoder
from hookbus.codecs.elicitation import Bodies
from hookbus.codecs.strict import Limits
from hookbus.policies.aep_capture import AepRewriter
from hookbus.policies.capture import Rewriter, View
from hookbus.policies.copies import Copier
from hookbus.policies.correlation import PendingRequests
from hookbus.policies.fates import Resolve, Schema
from hookbus.policies.match import compile_filter
from hookbus.policies.redaction.contract import Redacts
from hookbus.policies.selection import Selection
from hookbus.policies.struct_capture import StructRewriter
from hookbus.router import build_bus, redaction
from hookbus.router.configuration.config import (
    Config,
    Correlation,
    DeadLetters,
    Route,
)
from hookbus.router.correlation import Correlator
from hookbus.router.dead_letters import DeadLetterOffice
from hookbus.router.errors import StartupError
from hookbus.router.formats import Formatter
from hookbus.router.memory import Memory
from hookbus.router.orders import RoutePlan
from hookbus.router.pipeline import Pipeline
from hookbus.router.replays.attempts import replay_topic
from hookbus.schemas import loader

_STREAM_EVENTS = 10_000
"""How many AEP events of a partition are remembered, to tell which break the rules of streams."""
_STREAM_EVENTS_OF_INPUT = 1_000_000
_ANSWERED_OF_INPUT = 100_000
_BATCHES_REDELIVERED = 2
"""The router loop processes a batch while the one before is settled; both may come again."""
_OFFSETS_OF_RECORD = 2
"""On Kafka the end of a transaction takes an offset too, and each record may be in one of its own.
Where more offsets are missing (compaction, aborted transactions), a second result may be an orphan
when it comes again; a first one would have to be followed by `max_answered` others."""


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
        struct_rewriter(),
        AepRewriter(payloads, lambda reference: definitions[reference.rpartition("/")[2]]),
        redactor,
    )


def formatter() -> Formatter:
    return Formatter(ToAep(Bodies(loader.load_elicitation())), rewriter())


def rewriter(redactor: Redacts | None = None) -> Rewriter:
    return Rewriter(*_ahp_schemas(), redactor)


def struct_rewriter() -> StructRewriter:
    return StructRewriter(*_ahp_schemas())


def _ahp_schemas() -> tuple[dict[str, Schema], Resolve]:
    """By event type, and what finds the others."""
    schemas = loader.load()
    definitions = schemas["definitions"]
    return (
        {name: definitions[name] for name in loader.event_types(schemas)},
        lambda reference: definitions[reference.rpartition("/")[2]],
    )


def decoder(config: Config) -> Decoder:
    return Decoder(Limits(max_bytes=config.limits.max_bytes, max_depth=config.limits.max_depth))


def correlator() -> Correlator:
    return Correlator(Bodies(loader.load_elicitation()))


def memory(config: Config) -> Memory:
    """What is remembered of a partition, nothing yet."""
    redelivered = _BATCHES_REDELIVERED * config.bus.max_poll_records * _OFFSETS_OF_RECORD
    return Memory(_pending(config.correlation, redelivered), Streams(_STREAM_EVENTS))


def memory_of_input() -> Memory:
    """What is remembered of the lines that a command reads: each comes once."""
    bounds = Correlation(max_answered=_ANSWERED_OF_INPUT)
    return Memory(_pending(bounds, redelivered=0), Streams(_STREAM_EVENTS_OF_INPUT))


def _pending(bounds: Correlation, redelivered: int) -> PendingRequests:
    return PendingRequests(
        most=bounds.max_requests,
        most_answered=bounds.max_answered,
        redelivered=redelivered,
        age=int(bounds.max_age * 1000),
    )


def pipeline(config: Config, judge: Decoder) -> Pipeline:
    return Pipeline(
        judge,
        correlator(),
        copier(redaction.redactor(config, build_bus.read_secret)),
        formatter(),
        tuple(route_plan(name, route) for name, route in config.routes.items()),
        office(config),
        levels={
            topic: source.capture for source in config.ingress.values() for topic in source.topics
        },
        changelogs={topic: changelog for changelog, topic in build_bus.changelogs(config).items()},
        failures_topic=config.failures.topic if config.failures else None,
        largest=build_bus.largest(config),
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
    return DeadLetterOffice(dead_letters(config), build_bus.largest(config), replays)


def dead_letters(config: Config) -> DeadLetters:
    if config.dead_letters is None:
        raise StartupError("dead_letters: missing")
    return config.dead_letters
