"""The stdout sink."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest

from hookbus.policies.faults import Fault
from hookbus.router.build_sinks import Backends
from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.configuration.config import SinkConfig, StdoutBackend
from hookbus.router.sinks.contract import Delivery
from hookbus.router.sinks.stdout import StdoutSink
from hookbus.router.sinks.threads import in_thread
from hookbus.router.types import Record

Records = Callable[..., list[Record]]
Eventually = Callable[[Callable[[], bool]], Awaitable[None]]


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """A pipe: what is read from, what is written to."""
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as reader, os.fdopen(write, "wb") as writer:
        yield reader, writer


async def test_records_are_printed_one_a_line(
    tmp_path: Path, make_record: Callable[..., Record]
) -> None:
    """To a file too, where stdout is redirected to one; a tombstone prints nothing."""
    path = tmp_path / "out"
    with path.open("wb") as stream:
        stream.write(b"before\n")
        sink = StdoutSink(stream)
        await sink.open()
        batch = [make_record(0, b'{\r\n"a":1}'), make_record(1, None), make_record(2, b"{}")]
        assert await sink.deliver(batch, 1.0) == Delivery(3)
        assert path.read_bytes() == b'before\n{  "a":1}\n{}\n'
        await sink.close()
        assert not stream.closed


async def test_a_slow_reader_is_waited_for(
    pipe: tuple[BinaryIO, BinaryIO], records: Records
) -> None:
    """A line longer than the pipe goes through in pieces while the loop goes on."""
    reader, writer = pipe
    batch = records(3, native="x" * 300_000)
    sink = StdoutSink(writer)
    reading = asyncio.create_task(asyncio.to_thread(_read_lines, reader, 3))
    assert await sink.deliver(batch, 10.0) == Delivery(3)
    assert [json.loads(text) for text in await reading] == [
        json.loads(record.value or b"") for record in batch
    ]


async def test_a_line_that_was_torn_by_a_timeout_is_ended_first(
    pipe: tuple[BinaryIO, BinaryIO], records: Records
) -> None:
    """Nobody reads: the attempt ends in time, and what was begun stays one line."""
    reader, writer = pipe
    first, second = records(2, native="x" * 300_000)
    sink = StdoutSink(writer)
    assert await sink.deliver([first], 1.0) == Delivery(0, Fault("route", "timeout"))
    assert await sink.deliver([first], 0.05) == Delivery(0, Fault("route", "timeout"))
    reading = asyncio.create_task(asyncio.to_thread(_read_lines, reader, 3))
    assert await sink.deliver([first, second], 10.0) == Delivery(2)
    assert [json.loads(text)["id"] for text in await reading] == ["evt-0", "evt-0", "evt-1"]


async def test_a_reader_that_went_away_is_a_route_fault(
    pipe: tuple[BinaryIO, BinaryIO], records: Records
) -> None:
    """A broken pipe is told, not raised."""
    reader, writer = pipe
    reader.close()
    delivery = await StdoutSink(writer).deliver(records(2), 1.0)
    assert delivery == Delivery(0, Fault("route", "io_error"))


async def test_two_tasks_do_not_mix_their_lines(
    pipe: tuple[BinaryIO, BinaryIO], records: Records
) -> None:
    """A stream that several loops share is written one delivery after the other."""
    reader, writer = pipe
    sink = StdoutSink(writer)
    reading = asyncio.create_task(asyncio.to_thread(_read_lines, reader, 40))
    batches = [records(10, start=n * 10, native="x" * 20_000) for n in range(4)]
    await asyncio.gather(*(sink.deliver(batch, 10.0) for batch in batches))
    assert {json.loads(text)["id"] for text in await reading} == {f"evt-{n}" for n in range(40)}


async def test_two_sinks_of_a_process_do_not_mix_their_lines_and_neither_waits_for_the_other(
    pipe: tuple[BinaryIO, BinaryIO],
    records: Records,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever they are called, and although each has a loop that retries what was not printed."""
    reader, writer = pipe
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=writer))
    backends = Backends(SqliteBus(tmp_path / "bus.db"))
    settings = SinkConfig(topics=["t"], policy="fail-closed", stdout=StdoutBackend())
    sinks = [backends.sink(name, settings) for name in ("one", "two")]
    batches = [records(20, start=n * 20, native="x" * 100_000) for n in range(2)]
    reading = in_thread(lambda: _read_lines(reader, 40))
    assert (
        await asyncio.gather(
            *(sink.deliver(batch, 50.0) for sink, batch in zip(sinks, batches, strict=True))
        )
        == [Delivery(20)] * 2
    )
    read = await reading
    assert sorted(int(json.loads(text)["id"].removeprefix("evt-")) for text in read) == [*range(40)]


async def test_a_cancelled_delivery_stops_at_once(
    pipe: tuple[BinaryIO, BinaryIO], records: Records, eventually: Eventually
) -> None:
    """The cancellation is not held up by a full pipe."""
    _, writer = pipe
    task = asyncio.create_task(StdoutSink(writer).deliver(records(1, native="x" * 200_000), 60.0))
    await asyncio.sleep(0)
    task.cancel()
    await eventually(task.cancelled)


def _read_lines(reader: BinaryIO, count: int) -> list[bytes]:
    data = b""
    while data.count(b"\n") < count:
        data += reader.read(65536)
    return data.splitlines()
