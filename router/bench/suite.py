"""The benchmarks, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hookbus.router.bench import in_memory
from hookbus.router.bench.bus_kafka import bus_kafka
from hookbus.router.bench.bus_sqlite import bus_sqlite
from hookbus.router.bench.growth import growth
from hookbus.router.bench.latency import latency
from hookbus.router.bench.memory import memory
from hookbus.router.bench.timing import Result
from hookbus.router.bench.workbench import Workbench
from hookbus.router.bench.workers import workers

Benchmark = Callable[[Workbench], Iterator[Result]]


def _validate(bench: Workbench) -> Iterator[Result]:
    yield from in_memory.validate(bench.budget)


def _pipeline(bench: Workbench) -> Iterator[Result]:
    yield from in_memory.pipeline(bench.budget)


def _redact(bench: Workbench) -> Iterator[Result]:
    yield from in_memory.redact(bench.budget)


def _bus(bench: Workbench) -> Iterator[Result]:
    broker = bench.kafka()
    if broker is not None:
        yield bench.run(bus_kafka(broker, bench.budget))
    yield bench.run(bus_sqlite(bench.budget))


def _workers(bench: Workbench) -> Iterator[Result]:
    broker = bench.kafka()
    if broker is not None:
        yield bench.run(workers("workers (Kafka)", broker, bench.budget))
    yield bench.run(workers("workers (SQLite)", None, bench.budget))


def _latency(bench: Workbench) -> Iterator[Result]:
    broker = bench.kafka()
    if broker is not None:
        yield bench.run(latency("latency (Kafka)", broker, bench.budget))
    yield bench.run(latency("latency (SQLite)", None, bench.budget))


def _memory(bench: Workbench) -> Iterator[Result]:
    yield bench.run(memory(bench.budget))


def _growth(bench: Workbench) -> Iterator[Result]:
    yield from growth(bench.budget)


SUITE: Final[Mapping[str, Benchmark]] = {
    "validate": _validate,
    "pipeline": _pipeline,
    "redact": _redact,
    "bus": _bus,
    "workers": _workers,
    "latency": _latency,
    "memory": _memory,
    "growth": _growth,
}
