"""The benchmarks that touch neither disk nor network: validation, the pipeline, redaction."""

from __future__ import annotations

import importlib.util
import json
from itertools import count
from typing import Final

import orjson

from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.router import build
from hookbus.router.bench.budget import Budget
from hookbus.router.bench.events import many_sessions, padded_mix, six_type_mix
from hookbus.router.bench.timing import Result, Work, compare
from hookbus.router.configuration.config_file import parse
from hookbus.router.memory import Memory
from hookbus.router.pipeline import Pipeline
from hookbus.router.types import Record

THREE_ROUTES: Final = """
bus: {sqlite: {path: unused.db}}
ingress: {agents: {topics: [in]}}
routes:
  whole: {topic: whole, capture: full}
  structure: {topic: structure, capture: metadata}
  presence: {topic: presence, capture: metadata, content: {default: omit}}
dead_letters: {topic: dead}
"""


REDACTING: Final = THREE_ROUTES.replace(
    "dead_letters:",
    "  review: {topic: review, capture: redacted, redact: true}\ndead_letters:",
)

_ONE_ROUTE: Final = """
bus: {{sqlite: {{path: unused.db}}}}
ingress: {{agents: {{topics: [in], capture: {held}}}}}
routes:
  one: {{topic: one, capture: {capture}}}
dead_letters: {{topic: dead}}
"""


def validate(budget: Budget) -> list[Result]:
    """Strict decoding and validation."""
    return [
        compare(name, _decoding(events), _references(events), budget)
        for name, events in _mixes("validate").items()
    ]


def pipeline(budget: Budget) -> list[Result]:
    """One record in, three copies out, encoded: full, metadata, and metadata with a selection."""
    return [
        compare(name, stepping(events), _references(events), budget)
        for name, events in _mixes("pipeline").items()
    ]


def redact(budget: Budget) -> list[Result]:
    """One record in, four copies out: those of the pipeline, and a redacted one. What short texts
    became is remembered for a while; of many sessions, only what one of them repeats is."""
    many = {"redact (many sessions)": many_sessions(six_type_mix())}
    return [
        compare(
            name,
            stepping(events, REDACTING, copies=4),
            {**_references(events), "metadata copy": _copying(events, "metadata", "full")},
            budget,
        )
        for name, events in (_mixes("redact") | many).items()
    ]


def _mixes(name: str) -> dict[str, list[bytes]]:
    return {name: six_type_mix(), f"{name} (10 KB messages)": padded_mix()}


def _decoding(events: list[bytes]) -> Work:
    decode = Decoder().decode

    def work() -> int:
        for event in events:
            if not isinstance(decode(event), Event):
                raise AssertionError("a benchmark event is refused")
        return len(events)

    return work


def stepping(
    events: list[bytes], text: str = THREE_ROUTES, copies: int = 3, memory: Memory | None = None
) -> Work:
    """All of the events through the pipeline of a configuration, each to so many routes; without a
    `memory`, each time with a new one."""
    config = parse(text)
    made: Pipeline = build.pipeline(config, build.decoder(config))
    offsets = count()

    def work() -> int:
        remembered = memory or build.memory(config)
        for event in events:
            record = Record("in", 0, next(offsets), 0, None, event)
            if len(made.step(record, remembered).outputs) < copies:
                raise AssertionError("a benchmark event is not routed")
        return len(events)

    return work


def _copying(events: list[bytes], capture: str, held: str) -> Work:
    """A single route with this ceiling, on events of which the ingress holds this level."""
    return stepping(events, _ONE_ROUTE.format(capture=capture, held=held), copies=1)


def _references(events: list[bytes]) -> dict[str, Work]:
    references: dict[str, Work] = {"orjson loads+dumps": _orjson(events)}
    if importlib.util.find_spec("agenthooksprotocol") is not None:
        references["official validator"] = _official(events)
    return references


def _orjson(events: list[bytes]) -> Work:
    def work() -> int:
        for event in events:
            orjson.dumps(orjson.loads(event))
        return len(events)

    return work


def _official(events: list[bytes]) -> Work:
    from agenthooksprotocol.runtime import Validator

    check = Validator().validate
    trees = [json.loads(event) for event in events]

    def work() -> int:
        for tree in trees:
            check("event", tree)
        return len(trees)

    return work
