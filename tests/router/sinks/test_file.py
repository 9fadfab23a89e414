"""The file sink: what it writes, where, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.policies.faults import Fault
from hookbus.router.errors import StartupError
from hookbus.router.sinks.contract import Delivery
from hookbus.router.sinks.file import FileSink
from hookbus.router.types import Record
from tests.router.sinks.attempts import AMPLE

Records = Callable[..., list[Record]]


def ids(*paths: Path) -> list[str]:
    """The event ids in the files; every line must be whole and hold one value."""
    lines = [text for path in paths for text in path.read_bytes().splitlines(keepends=True)]
    assert all(text.endswith(b"\n") for text in lines)
    return [json.loads(text)["id"] for text in lines]


def expected(*numbers: int) -> list[str]:
    """The ids of the events with these numbers."""
    return [f"evt-{number}" for number in numbers]


def handle_of(path: Path) -> int:
    """The file descriptor by which this process has the file open."""
    links = Path("/proc/self/fd")
    if not links.exists():
        pytest.skip("no /proc here")
    return next(int(n) for n in os.listdir(links) if (links / n).resolve() == path.resolve())


async def test_records_are_appended_one_a_line(
    tmp_path: Path, make_record: Callable[..., Record]
) -> None:
    """Pretty-printed values lose their line breaks, escaped ones stay, tombstones write nothing."""
    path = tmp_path / "archive.jsonl"
    sink = FileSink(path)
    await sink.open()
    batch = [
        make_record(0, b'{\r\n  "text": "a\\nb"\n}'),
        make_record(1, None),
        make_record(2, b"{}"),
    ]
    assert await sink.deliver(batch, AMPLE) == Delivery(3)
    assert await sink.deliver([], AMPLE) == Delivery(0)
    await sink.close()
    assert path.read_bytes() == b'{    "text": "a\\nb" }\n{}\n'


async def test_the_file_is_for_its_owner_only(tmp_path: Path, records: Records) -> None:
    """Hook events are nobody else's business, and an existing file keeps its mode."""
    path = tmp_path / "archive.jsonl"
    sink = FileSink(path)
    await sink.open()
    await sink.deliver(records(1), AMPLE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await sink.close()
    path.chmod(0o640)
    await sink.open()
    await sink.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_a_restart_goes_on_where_it_stopped(tmp_path: Path, records: Records) -> None:
    """What is there stays there."""
    path = tmp_path / "archive.jsonl"
    for start in (0, 2):
        sink = FileSink(path)
        await sink.open()
        assert await sink.deliver(records(2, start=start), AMPLE) == Delivery(2)
        await sink.close()
    assert ids(path) == expected(0, 1, 2, 3)


async def test_rotation_shifts_and_drops(tmp_path: Path, records: Records) -> None:
    """The newest is the path itself, then .1 and .2; older ones go."""
    path = tmp_path / "a"
    size = len(records(1)[0].value or b"") + 1
    sink = FileSink(path, rotate_bytes=2 * size, rotate_keep=2)
    await sink.open()
    assert await sink.deliver(records(9), AMPLE) == Delivery(9)
    await sink.close()
    assert sorted(os.listdir(tmp_path)) == ["a", "a.1", "a.2", "a.lock"]
    assert ids(tmp_path / "a.2", tmp_path / "a.1", path) == expected(4, 5, 6, 7, 8)
    assert stat.S_IMODE((tmp_path / "a.1").stat().st_mode) == 0o600


async def test_a_rotation_that_a_crash_cut_short_loses_nothing(
    tmp_path: Path, records: Records
) -> None:
    """The gap that the crash left among the numbers is filled before anything is dropped."""
    (tmp_path / "a.2").write_bytes(b'{"id":"evt-0"}\n')
    (tmp_path / "a").write_bytes(b'{"id":"evt-1"}\n')
    sink = FileSink(tmp_path / "a", rotate_bytes=16, rotate_keep=2)
    await sink.open()
    assert await sink.deliver(records(1, start=2), AMPLE) == Delivery(1)
    await sink.close()
    assert ids(tmp_path / "a.2", tmp_path / "a.1", tmp_path / "a") == expected(0, 1, 2)


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 300), max_size=12),
    limit=st.integers(1, 400),
    batch=st.integers(1, 5),
)
def test_no_line_is_divided_by_rotation(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int, batch: int
) -> None:
    """The files in order are the lines in order, and only a lone line is longer than the limit."""
    folder = tmp_path_factory.mktemp("rotation")
    values = [json.dumps("x" * size).encode() for size in sizes]
    batch_of = [Record("t", 0, n, 0, None, value) for n, value in enumerate(values)]

    async def write() -> None:
        sink = FileSink(folder / "a", rotate_bytes=limit, rotate_keep=20)
        await sink.open()
        for start in range(0, len(batch_of), batch):
            part = batch_of[start : start + batch]
            assert await sink.deliver(part, AMPLE) == Delivery(len(part))
        await sink.close()

    asyncio.run(write())
    files = [folder / f"a.{number}" for number in range(20, 0, -1)] + [folder / "a"]
    contents = [path.read_bytes() for path in files if path.exists()]
    assert b"".join(contents).splitlines() == values
    assert all(len(data) <= limit or data.count(b"\n") == 1 for data in contents)


async def test_a_file_that_a_log_rotator_took_is_made_anew(
    tmp_path: Path, records: Records
) -> None:
    """Renamed or removed, the next delivery goes to a new file at the path."""
    path = tmp_path / "a"
    sink = FileSink(path)
    await sink.open()
    await sink.deliver(records(1), AMPLE)
    path.rename(tmp_path / "old")
    assert await sink.deliver(records(1, start=1), AMPLE) == Delivery(1)
    assert ids(path) == expected(1)
    path.unlink()
    assert await sink.deliver(records(1, start=2), AMPLE) == Delivery(1)
    assert ids(path) == expected(2)
    await sink.close()


async def test_every_torn_last_line_is_cut_away(tmp_path: Path, records: Records) -> None:
    """Wherever a crash stopped the write, the record comes again and is there once."""
    whole = tmp_path / "whole"
    sink = FileSink(whole)
    await sink.open()
    batch = records(3)
    await sink.deliver(batch, AMPLE)
    await sink.close()
    data = whole.read_bytes()
    torn = tmp_path / "torn"
    for size in range(len(data) // 3 * 2, len(data)):
        torn.write_bytes(data[:size])
        sink = FileSink(torn)
        await sink.open()
        assert await sink.deliver(batch[2:], AMPLE) == Delivery(1)
        await sink.close()
        assert torn.read_bytes() == data


async def test_a_torn_line_longer_than_a_block_is_cut_away(
    tmp_path: Path, records: Records, make_record: Callable[..., Record]
) -> None:
    """The search for the last whole line goes back as far as it must, to the start if it must."""
    path = tmp_path / "a"
    for before in (b"", b'{"id":"evt-0"}\n'):
        path.write_bytes(before + b'{"text":"' + b"x" * 200_000)
        sink = FileSink(path)
        await sink.open()
        await sink.close()
        assert path.read_bytes() == before


async def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """A last line that no crash of ours can have left stops the start instead of being cut."""
    path = tmp_path / "notes.txt"
    path.write_text("important")
    with pytest.raises(StartupError, match="not a line of JSON"):
        await FileSink(path).open()
    assert path.read_text() == "important"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.symlink_to("elsewhere"), "symbolic links"),
        (os.mkfifo, "not a regular file"),
    ],
)
async def test_a_path_that_is_no_regular_file_is_refused(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    """The start says so, and nothing is written through a link."""
    path = tmp_path / "a"
    make(path)
    sink = FileSink(path)
    with pytest.raises(StartupError, match=message):
        await sink.open()
    await sink.close()
    assert not (tmp_path / "elsewhere").exists()


async def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    """It is a typing error more often than a disk that comes later."""
    with pytest.raises(StartupError, match="no such file"):
        await FileSink(tmp_path / "missing" / "a").open()


@pytest.mark.parametrize("setting", [{"rotate_bytes": 0}, {"rotate_keep": 0}])
def test_settings_that_mean_nothing_are_refused(setting: dict[str, int]) -> None:
    """A file of no size and a rotation that keeps nothing are mistakes."""
    with pytest.raises(ValueError, match="at least 1"):
        FileSink("a", **setting)


async def test_one_path_has_one_writer(tmp_path: Path, records: Records) -> None:
    """A second writer is told so at its start, in this process and in another, also after a
    rotation; it may start when the first has closed."""
    path = tmp_path / "a"
    first, second = FileSink(path, rotate_bytes=1), FileSink(path)
    await first.open()
    await first.deliver(records(3), AMPLE)
    with pytest.raises(StartupError, match="in use by another writer"):
        await second.open()
    other = (
        "import asyncio, sys; from hookbus.router.sinks.file import FileSink;"
        "asyncio.run(FileSink(sys.argv[1]).open())"
    )
    process = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", other, str(path)], capture_output=True, check=False
    )
    assert b"in use by another writer" in process.stderr
    await first.close()
    await second.open()
    await second.close()


async def test_a_path_that_goes_bad_while_running_is_a_route_fault(
    tmp_path: Path, records: Records
) -> None:
    """It is told and not raised, and the sink goes on when the path is good again."""
    path = tmp_path / "a"
    sink = FileSink(path)
    await sink.open()
    path.unlink()
    path.mkdir()
    assert await sink.deliver(records(1), AMPLE) == Delivery(0, Fault("route", "io_error"))
    path.rmdir()
    os.mkfifo(path)
    assert await sink.deliver(records(1), AMPLE) == Delivery(0, Fault("route", "io_error"))
    path.unlink()
    assert await sink.deliver(records(1), AMPLE) == Delivery(1)
    await sink.close()
    assert ids(path) == expected(0)


async def test_a_handle_that_went_bad_is_replaced(tmp_path: Path, records: Records) -> None:
    """Neither writing nor cutting works with it; what may have been written is cut on reopening,
    whole lines too, because they were never reported."""
    path = tmp_path / "a"
    sink = FileSink(path)
    await sink.open()
    await sink.deliver(records(1), AMPLE)
    handle = handle_of(path)
    with path.open("rb") as read_only:
        os.dup2(read_only.fileno(), handle)
    assert await sink.deliver(records(2, start=1), AMPLE) == Delivery(0, Fault("route", "io_error"))
    with path.open("ab") as other:
        other.write((records(1, start=1)[0].value or b"") + b'\n{"id":"ev')
    assert await sink.deliver(records(2, start=1), AMPLE) == Delivery(2)
    await sink.close()
    assert ids(path) == expected(0, 1, 2)


async def test_what_ran_out_of_time_is_not_in_the_file(tmp_path: Path, records: Records) -> None:
    """However short the time, the file holds exactly what was reported as delivered."""
    path = tmp_path / "a"
    chance = random.Random(7)
    sink = FileSink(path, rotate_bytes=1000, rotate_keep=5000)
    await sink.open()
    position, outcomes = 0, set()
    for _ in range(400):
        delivery = await sink.deliver(records(5, start=position), chance.random() * 0.002)
        assert delivery.fault == (None if delivery.delivered else Fault("route", "timeout"))
        position += delivery.delivered
        outcomes.add(delivery.fault)
    await sink.close()
    numbered = [tmp_path / f"a.{n}" for n in range(len(os.listdir(tmp_path)) - 2, 0, -1)]
    assert ids(*numbered, path) == expected(*range(position))
    assert Fault("route", "timeout") in outcomes


async def test_a_cancelled_delivery_leaves_whole_lines(tmp_path: Path, records: Records) -> None:
    """The next delivery waits for what can't be interrupted and doesn't mix with it."""
    path = tmp_path / "a"
    sink = FileSink(path)
    await sink.open()
    for number in range(50):
        task = asyncio.create_task(sink.deliver(records(5, start=5 * number), AMPLE))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await sink.deliver(records(1, start=1000), AMPLE) == Delivery(1)
    await sink.close()
    assert ids(path)[-1] == "evt-1000"
