"""The embedded bus: one record in, three out, against plain inserts of the same rows."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from hookbus.router import build, build_bus
from hookbus.router.bench.bare import Row, insert
from hookbus.router.bench.budget import Budget
from hookbus.router.bench.events import sessions
from hookbus.router.bench.routing import fill, routing
from hookbus.router.bench.timing import Result, summary
from hookbus.router.buses.sqlite_schema import prepare
from hookbus.router.configuration.config import Config
from hookbus.router.configuration.config_file import parse
from hookbus.router.types import Record

NAME: Final = "bus (SQLite)"
_BARE: Final = "bare inserts"

_CONFIG: Final = """
bus: {{sqlite: {{path: {path}}}, create_topics: {{partitions: 4}}}}
ingress: {{agents: {{topics: [in]}}}}
routes:
  whole: {{topic: whole, capture: full}}
  structure: {{topic: structure, capture: metadata}}
  presence: {{topic: presence, capture: metadata, content: {{default: omit}}}}
dead_letters: {{topic: dead}}
"""


async def bus_sqlite(budget: Budget) -> Result:
    """Files of their own in a temporary folder, which goes at the end."""
    with TemporaryDirectory(prefix="hookbus-bench-") as folder:
        config = parse(_CONFIG.format(path=f"{folder}/bus.db"))
        return await _measure(config, Path(folder, "bare.db"), budget)


async def _measure(config: Config, bare: Path, budget: Budget) -> Result:
    rounds = []
    with closing(sqlite3.connect(bare, isolation_level=None)) as connection:
        prepare(connection, str(bare))
        async with routing(config) as (bus, router):
            for number in range(budget.rounds):
                samples = list(sessions(number * budget.bus_sessions, budget.bus_sessions))
                await fill(bus, build_bus.ingress_topics(config)[0], samples)
                ours = await router.run(len(samples))
                rows = _rows(config, [one.value for one in samples], connection)
                started = time.perf_counter()
                insert(connection, rows)
                theirs = time.perf_counter() - started
                rounds.append({NAME: len(samples) / ours, _BARE: len(samples) / theirs})
    return summary(NAME, [_BARE], rounds)


def _rows(config: Config, values: list[bytes], connection: sqlite3.Connection) -> list[list[Row]]:
    """The outputs of these events, as they would be stored, in transactions as large as ours."""
    pipeline = build.pipeline(config, build.decoder(config))
    memory = build.memory(config)
    encode = msgspec.msgpack.Encoder().encode
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM records").fetchone()
    batch = config.bus.max_poll_records
    transactions: list[list[Row]] = [[] for _ in range(0, len(values), batch)]
    for offset, value in enumerate(values):
        record = Record("in", 0, offset, 0, None, value)
        for output in pipeline.step(record, memory).outputs:
            if output.partition is not None:
                continue  # a change to the pending requests, which only a router has
            last += 1
            row = (last, 0, output.key or b"", output.value or b"", encode(output.headers))
            transactions[offset // batch].append(row)
    return transactions
