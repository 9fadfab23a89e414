"""Both event loops run the service: its signals, its processes, its buses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import BusKind, Processes, Setup, lines, publish, stream, until

pytest.importorskip("uvloop", reason="the extra `speed` is not installed")

WITHOUT = """
import sys
sys.modules["uvloop"] = None
from hookbus.router.cli import main
sys.exit(main())
"""


def _archive(setup: Setup, event_loop: str, **more: object) -> Path:
    setup.tree |= {"event_loop": event_loop, **more}
    setup.route("archive", capture="full")
    path = setup.file_sink("archive", "archive", "failures")
    setup.journal_only("archive")
    setup.write()
    return path


@pytest.mark.parametrize("event_loop", ["asyncio", "uvloop", "auto"])
def test_the_service_delivers_and_stops_at_a_signal(
    event_loop: str, setup: Setup, processes: Processes
) -> None:
    path = _archive(setup, event_loop)
    service = processes.run(setup).ready()
    sent = stream(300)
    publish(setup, sent)
    until(lambda: len(lines(path)) >= len(sent), lambda: f"all there: {service.stderr}")
    service.stop()
    assert sorted(lines(path)) == sorted(sent)


def test_workers_are_started_again_and_stopped(tmp_path: Path, processes: Processes) -> None:
    """Subprocesses, their pipes and the signals to them are uvloop's own."""
    setup = Setup(BusKind("sqlite"), tmp_path)
    path = _archive(setup, "uvloop", workers=2)
    service = processes.run(setup).ready()
    victim = service.workers()["router-1"]
    os.kill(victim, signal.SIGKILL)
    until(lambda: service.workers()["router-1"] != victim, "another router")
    sent = stream(300)
    publish(setup, sent)
    until(lambda: len(set(lines(path))) >= len(sent), lambda: f"all there: {service.stderr}")
    service.ready().stop()


def test_uvloop_is_refused_where_it_is_not_installed(tmp_path: Path) -> None:
    """Going on with another loop would not be what was asked for."""
    setup = Setup(BusKind("sqlite"), tmp_path)
    _archive(setup, "uvloop")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "run", "-c", str(setup.file)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert "event_loop: uvloop is not installed" in done.stderr
