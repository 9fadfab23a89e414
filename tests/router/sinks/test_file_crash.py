"""The file sink against real processes: a full disk, a kill at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

WRITER = """
import asyncio, resource, sys
from hookbus.router.sinks.file import FileSink
from hookbus.router.types import Record

def batch(start, count, padding):
    value = b'{"n":%d,"padding":"' + b"x" * padding + b'"}'
    return [Record("t", 0, n, 0, None, value % n) for n in range(start, start + count)]
"""

FILLS = (
    WRITER
    + """
async def main(path, padding):
    sink = FileSink(path)
    await sink.open()
    position = 0
    while True:
        delivery = await sink.deliver(batch(position, 3, padding), 30.0)
        position += delivery.delivered
        if delivery.fault is not None:
            break
    print(position, delivery.fault.kind, delivery.fault.reason, flush=True)
    again = await sink.deliver(batch(position, 3, padding), 30.0)
    print(again.delivered, again.fault.reason, flush=True)
    make_room()
    print((await sink.deliver(batch(position, 3, 0), 30.0)).delivered, flush=True)
    await sink.close()
"""
)

QUOTA = (
    FILLS
    + """
def make_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))

resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
asyncio.run(main(sys.argv[1], 900))
"""
)

DISK = (
    FILLS
    + """
import os
def make_room():
    os.unlink(sys.argv[1] + "/ballast")

with open(sys.argv[1] + "/ballast", "wb") as ballast:
    ballast.write(b"x" * 100_000)
asyncio.run(main(sys.argv[1] + "/a", 30_000))
sys.stdout.flush()
sys.stderr.buffer.write(open(sys.argv[1] + "/a", "rb").read())
"""
)

FOREVER = (
    WRITER
    + """
async def main(path):
    sink = FileSink(path, rotate_bytes=20_000, rotate_keep=10_000)
    await sink.open()
    position = int(sys.argv[2])
    while True:
        delivery = await sink.deliver(batch(position, 7, position % 1500), 30.0)
        position += delivery.delivered
        print(position, flush=True)

asyncio.run(main(sys.argv[1]))
"""
)


def numbers(data: bytes) -> list[int]:
    """The record numbers in the lines, each of which must be whole."""
    assert data == b"" or data.endswith(b"\n")
    return [json.loads(text)["n"] for text in data.splitlines()]


def check_outage(printed: str, data: bytes) -> None:
    """A writer that met a full disk: whole lines before, whole lines after, nothing lost or
    double."""
    met, again, after = printed.splitlines()
    position, kind, reason = met.split()
    assert (kind, reason) == ("route", "disk_full")
    assert int(position) > 0
    assert again == "0 disk_full"
    assert after == "3"
    assert numbers(data) == list(range(int(position) + 3))


def test_a_full_quota_is_a_route_fault_and_leaves_whole_lines(tmp_path: Path) -> None:
    """The kernel stops the write in the middle of a line; the file ends before it."""
    path = tmp_path / "a"
    process = subprocess.run(
        [sys.executable, "-c", QUOTA, str(path)], capture_output=True, text=True, check=True
    )
    check_outage(process.stdout, path.read_bytes())


def test_a_full_disk_is_a_route_fault_and_leaves_whole_lines(tmp_path: Path) -> None:
    """The same on a real file system of 256 KiB, in a mount namespace of the test's own."""
    mount = 'mount -t tmpfs -o size=256k tmpfs "$0" && exec "$@"'
    space = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, str(tmp_path)]
    try:
        subprocess.run([*space, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no unprivileged mount namespaces here")
    process = subprocess.run(
        [*space, sys.executable, "-c", DISK, str(tmp_path)], capture_output=True, check=True
    )
    check_outage(process.stdout.decode(), process.stderr)


@pytest.mark.kill
def test_nothing_that_was_reported_is_lost_by_a_kill(tmp_path: Path) -> None:
    """Killed twelve times at arbitrary points and restarted from the last report, the files hold
    every reported record, in order, in whole lines, doubled only where no report came."""
    path = tmp_path / "a"
    reported = 0
    for reports in range(12):
        command = [sys.executable, "-c", FOREVER, str(path), str(reported)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(reports * 3 + 1):
                reported = int(process.stdout.readline())
            os.kill(process.pid, signal.SIGKILL)
            rest = process.stdout.read()
            whole = rest[: rest.rfind("\n") + 1].split()
            reported = int(whole[-1]) if whole else reported
    numbered = sorted(tmp_path.glob("a.[0-9]*"), key=lambda name: -int(name.suffix[1:]))
    assert numbered
    kept = [n for name in numbered for n in numbers(name.read_bytes())]
    last = path.read_bytes() if path.exists() else b""
    kept += numbers(last[: last.rfind(b"\n") + 1])
    assert set(kept) >= set(range(reported))
    steps = [after - before for before, after in pairwise(kept)]
    assert all(step == 1 or -7 < step <= 0 for step in steps)
