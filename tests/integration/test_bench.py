"""`hookbus bench`: every benchmark in its shortest form. What a figure is, is not judged here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
import pytest

from hookbus.router.bench.budget import QUICK
from hookbus.router.bench.latency import latency
from hookbus.router.bench.suite import SUITE
from hookbus.router.bench.table import line
from hookbus.router.bench.timing import Result
from hookbus.router.bench.workbench import Workbench
from tests.brokers import free_port

OFFICIAL = ("official validator", "orjson loads+dumps")
REDACT = ("metadata copy", *OFFICIAL)
WORKERS = ("one worker", "the machine's own gain")
NAMES = {
    "validate": {"validate": OFFICIAL, "validate (10 KB messages)": OFFICIAL},
    "pipeline": {"pipeline": OFFICIAL, "pipeline (10 KB messages)": OFFICIAL},
    "redact": {
        "redact": REDACT,
        "redact (10 KB messages)": REDACT,
        "redact (many sessions)": REDACT,
    },
    "bus": {
        "bus (Kafka)": ("bare batch loop", "bare send loop"),
        "bus (SQLite)": ("bare inserts",),
    },
    "workers": {"workers (Kafka)": WORKERS, "workers (SQLite)": WORKERS},
    "latency": {"latency (Kafka)": (), "latency (SQLite)": ()},
    "memory": {"memory": ()},
    "growth": {
        "growth: routes 1": (),
        "growth: routes 3": ("growth: routes 1",),
        "growth: routes 10": ("growth: routes 1",),
        "growth: routes 30": ("growth: routes 1",),
        "growth: bytes 500": (),
        "growth: bytes 1,000": ("growth: bytes 500",),
        "growth: bytes 10,000": ("growth: bytes 500",),
        "growth: bytes 100,000": ("growth: bytes 500",),
        "growth: open requests 0": (),
        "growth: open requests 10": ("growth: open requests 0",),
    },
}
"""What each benchmark measures, and what that is compared with."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.mark.kafka
@pytest.mark.parametrize("name", SUITE)
def test_a_benchmark_gives_the_figures_that_are_promised(
    name: str, stack: ExitStack, kafka_bootstrap: str
) -> None:
    """Each result has a rate, and the ratios to what it is compared with."""
    said: list[str] = []
    bench = Workbench(QUICK, kafka_bootstrap, None, said.append, stack)
    results = list(SUITE[name](bench))
    assert {one.name: tuple(sorted(one.ratios)) for one in results} == NAMES[name]
    for result in results:
        assert result.per_second > 0
        assert all(ratio >= 0 for ratio in result.ratios.values())
        told = msgspec.json.decode(msgspec.json.encode(result))
        assert set(told) == {"name", "per_second", "ratios"} | _more(name)
        if name == "latency":
            assert 0 < told["p50_ms"] <= told["p99_ms"]
        if name == "memory":
            assert list(told["rss_mb"]) == ["start", *map(str, QUICK.memory_marks)]
            assert all(size > 1 for size in told["rss_mb"].values())
        assert line(result).startswith(result.name)
    assert said == []


def _more(name: str) -> set[str]:
    return {"latency": {"p50_ms", "p99_ms"}, "memory": {"rss_mb", "growth"}}.get(name, set())


def test_without_a_broker_it_is_said_and_the_embedded_bus_is_measured(stack: ExitStack) -> None:
    said: list[str] = []
    results = list(SUITE["bus"](Workbench(QUICK, None, None, said.append, stack)))
    assert [result.name for result in results] == ["bus (SQLite)"]
    assert len(said) == 1
    assert said[0].startswith("not measured on Kafka")


def test_a_latency_is_measured_though_its_time_has_run_out() -> None:
    """As on a machine that pauses the benchmark for so long."""
    budget = msgspec.structs.replace(QUICK, load_seconds=0.0, latency_seconds=0.0)
    result = asyncio.run(latency("latency", None, budget))
    assert result.per_second > 0
    assert result.p50_ms is not None


def test_a_line_tells_all_that_a_result_has() -> None:
    memory = Result("memory", 1000.0, {}, rss_mb={"start": 50.0, "9": 60.0}, growth=0.2)
    assert line(memory).endswith("50 MB at start, 60 MB at 9, growth 20.0%")
    latency = Result("latency", 1000.0, {"other": 0.5}, p50_ms=1.5, p99_ms=9.0)
    assert line(latency).endswith("0.5 x other, p50 1.5 ms, p99 9 ms at half of that")


def test_the_command_prints_one_object_a_benchmark() -> None:
    """Progress goes to stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "hookbus.router", "bench", "--only", "validate", "--json"],
        capture_output=True,
        check=True,
    )
    results = [msgspec.json.decode(each, type=Result) for each in done.stdout.splitlines()]
    assert [result.name for result in results] == list(NAMES["validate"])
    assert b"measuring validate" in done.stderr


def test_a_broker_that_is_not_there_is_said_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hookbus.router", "bench", "--only", "bus",
         "--broker", f"127.0.0.1:{free_port()}"],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 4
    assert done.stdout == ""
    assert "connecting to Kafka" in done.stderr
    assert "Traceback" not in done.stderr
