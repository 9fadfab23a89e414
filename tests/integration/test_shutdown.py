"""How the service stops, and how its processes share the work."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import free_port
from tests.processes import (
    BusKind,
    Processes,
    Service,
    Setup,
    by_source,
    lines,
    publish,
    stream,
    until,
)

JSON = dict[str, Any]


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a backend that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hooks"


def _archive(setup: Setup) -> Path:
    """One route to one file."""
    setup.route("archive", capture="full")
    path = setup.file_sink("archive", "archive", "failures")
    setup.journal_only("archive")
    return path


def _events(path: Path) -> list[JSON]:
    return [json.loads(line) for line in lines(path)]


def _arrived(path: Path, count: int, service: Service) -> None:
    until(
        lambda: len(lines(path)) >= count,
        lambda: f"{count} lines; {len(lines(path))} are there; {service.stderr}",
    )


def test_a_stop_in_the_middle_settles_and_nothing_comes_twice(
    setup: Setup, processes: Processes
) -> None:
    path = _archive(setup)
    setup.write()
    sent: list[bytes] = []
    while len(lines(path)) == len(sent):  # or the stop came too late to test anything
        portion = stream(6000, start=len(sent))
        publish(setup, portion)
        service = processes.run(setup)
        _arrived(path, len(sent) + 100, service)
        service.stop()
        sent += portion
    _arrived(path, len(sent), processes.run(setup))
    assert by_source(_events(path)) == by_source([json.loads(line) for line in sent])


def test_a_stop_is_within_the_grace_although_a_backend_never_answers(
    setup: Setup, processes: Processes, silent: str
) -> None:
    path = _archive(setup)
    setup.sink("silent", "archive", http={"url": silent}, timeout="1h")
    setup.tree["shutdown_grace"] = "1s"
    setup.write()
    publish(setup, stream(20))
    service = processes.run(setup)
    _arrived(path, 20, service)
    until(lambda: service.metrics().value("hookbus_in_flight", loop="sink:silent"), "stuck")
    service.terminate()
    assert service.wait() == 4
    faults = [line["loop"] for line in service.logs if line["message"] == "loop ended by a fault"]
    assert "sink:silent" in faults


def test_what_a_stuck_sink_had_in_hand_comes_again(
    setup: Setup, processes: Processes, silent: str
) -> None:
    path = setup.folder / "late.jsonl"
    setup.route("archive", capture="full")
    setup.sink("late", "archive", http={"url": silent}, timeout="60s")
    setup.journal_only("late")
    setup.tree["shutdown_grace"] = "500ms"
    setup.write()
    publish(setup, stream(20))
    service = processes.run(setup)
    until(lambda: service.metrics().value("hookbus_in_flight", loop="sink:late"), "stuck")
    service.terminate()
    service.wait()
    del setup.tree["sinks"]["late"]["http"]
    setup.tree["sinks"]["late"]["file"] = {"path": str(path)}
    setup.write()
    _arrived(path, 20, processes.run(setup))


def test_a_second_signal_forces_the_stop(setup: Setup, processes: Processes, silent: str) -> None:
    setup.route("archive", capture="full")
    setup.sink("silent", "archive", http={"url": silent}, timeout="1h")
    setup.journal_only("silent")
    setup.tree["shutdown_grace"] = "1h"
    setup.write()
    publish(setup, stream(20))
    service = processes.run(setup)
    until(lambda: service.metrics().value("hookbus_in_flight", loop="sink:silent"), "stuck")
    service.terminate()
    until(lambda: service.logged("stopping"), "the first signal seen")
    service.terminate()
    assert service.wait() == 4


def test_a_stop_during_an_outage_is_quick_and_clean(setup: Setup, processes: Processes) -> None:
    setup.route("archive", capture="full")
    setup.sink("gone", "archive", http={"url": f"http://127.0.0.1:{free_port()}/hooks"})
    setup.journal_only("gone")
    setup.tree["shutdown_grace"] = "1h"
    setup.write()
    publish(setup, stream(20))
    service = processes.run(setup)
    until(lambda: service.metrics().value("hookbus_sink_up", sink="gone") == 0, "an outage")
    service.stop()


def test_an_idle_service_stops_at_once(setup: Setup, processes: Processes) -> None:
    _archive(setup)
    setup.tree["shutdown_grace"] = "1h"
    setup.write()
    processes.run(setup).ready().stop()


def test_a_stop_before_the_broker_is_there_is_clean(tmp_path: Path, processes: Processes) -> None:
    setup = Setup(BusKind("kafka", f"127.0.0.1:{free_port()}"), tmp_path)
    _archive(setup)
    setup.write()
    service = processes.run(setup)
    until(lambda: service.logged("bus unavailable, retrying"), "the broker missed")
    service.stop()


HUNG = """
import pathlib, socket, threading

def getaddrinfo(host, *arguments, found=socket.getaddrinfo, **named):
    if host == "hung.example":
        pathlib.Path(__file__).with_name("asked").touch()
        threading.Event().wait()
    return found(host, *arguments, **named)

socket.getaddrinfo = getaddrinfo
"""


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[tuple[Processes, Path]]:
    """Processes for which the name hung.example is looked up for ever, and a file that is there
    once one has begun to."""
    folder = tmp_path / "hung"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HUNG)
    with Processes({"PYTHONPATH": str(folder)}) as started:
        yield started, folder / "asked"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_waits_for_no_lookup_of_a_sink(
    tmp_path: Path, hung: tuple[Processes, Path], workers: int
) -> None:
    """The attempt is over after its timeout, and what it had in hand comes again."""
    processes, asked = hung
    setup = Setup(BusKind("sqlite"), tmp_path)
    setup.tree["workers"] = workers
    setup.route("archive", capture="full")
    setup.sink("hung", "archive", http={"url": "https://hung.example/hooks"}, timeout="100ms")
    setup.journal_only("hung")
    setup.write()
    publish(setup, stream(20))
    service = processes.run(setup)
    until(asked.exists, lambda: f"a lookup; {service.stderr}")
    service.stop()


def test_a_stop_waits_for_no_lookup_of_a_broker(
    tmp_path: Path, hung: tuple[Processes, Path]
) -> None:
    processes, asked = hung
    setup = Setup(BusKind("kafka", "hung.example:9092"), tmp_path)
    setup.tree["event_loop"] = "asyncio"  # uvloop has lookups of its own
    _archive(setup)
    setup.write()
    service = processes.run(setup)
    until(asked.exists, lambda: f"a lookup; {service.stderr}")
    service.stop()


class Slow:
    """A configuration file that is still to be written when the first process reads it, so that it
    is held up in its start."""

    def __init__(self, setup: Setup) -> None:
        self._path = setup.write()
        self._text = self._path.read_text()
        self._path.unlink()
        os.mkfifo(self._path)

    @contextmanager
    def read(self) -> Iterator[None]:
        """Entered when the process has begun to read; at the end it gets to read all."""
        with self._path.open("w") as file:
            yield
            self._path.unlink()
            self._path.write_text(self._text)
            file.write(self._text)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_that_comes_during_the_start_is_clean(
    tmp_path: Path, processes: Processes, workers: int
) -> None:
    setup = Setup(BusKind("sqlite"), tmp_path)
    setup.tree["workers"] = workers
    _archive(setup)
    slow = Slow(setup)
    service = processes.run(setup)
    with slow.read():
        service.terminate()
    assert service.wait() == 0, service.stderr
    assert service.logged("stopping")


def test_a_reload_that_is_asked_for_during_the_start_comes_after_it(
    tmp_path: Path, processes: Processes
) -> None:
    setup = Setup(BusKind("sqlite"), tmp_path)
    _archive(setup)
    slow = Slow(setup)
    service = processes.run(setup)
    with slow.read():
        service.signal(signal.SIGHUP)
    until(lambda: service.logged("configuration unchanged"), lambda: f"a reload; {service.stderr}")
    service.ready().stop()


def test_a_stop_gives_a_reload_up(tmp_path: Path, processes: Processes) -> None:
    """However long the loops take to end, none of them comes or goes meanwhile."""
    setup = Setup(BusKind("sqlite"), tmp_path)
    _archive(setup)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/hooks"
        setup.sink("silent", "archive", http={"url": url}, timeout="1h")
        setup.tree["shutdown_grace"] = "1h"
        setup.write()
        publish(setup, stream(20))
        service = processes.run(setup)
        until(lambda: service.metrics().value("hookbus_in_flight", loop="sink:silent"), "stuck")
        del setup.tree["sinks"]["silent"]
        late = setup.file_sink("late", "archive")
        slow = Slow(setup)
        service.signal(signal.SIGHUP)
        with slow.read():
            service.terminate()
            until(lambda: service.logged("stopping"), "the signal seen")
        refused = "configuration refused, the running one stays"
        until(lambda: service.logged(refused), lambda: f"the end of the reload; {service.stderr}")
        assert service.running
    assert service.wait() == 0, service.stderr
    assert (service.logged(refused) or {})["why"] == ["the service is stopping"]
    assert not late.exists()


def _partitions(service: Service, setup: Setup) -> set[str]:
    """The ingress partitions that a router shows the lag of; zero or not."""
    samples = service.metrics().labels("hookbus_lag", "partition")
    return {n for n, at in samples if at["topic"] == setup.topic("in")}


def test_two_routers_share_the_partitions_and_lose_nothing(
    setup: Setup, processes: Processes
) -> None:
    path = _archive(setup)
    setup.write()
    first = processes.run(setup, "--only", "router").ready()
    second = processes.run(setup, "--only", "router").ready()
    sink = processes.run(setup, "--only", "sink:archive").ready()

    def shared() -> bool:
        one, other = _partitions(first, setup), _partitions(second, setup)
        return len(one) == len(other) == 2 and not one & other

    until(shared, lambda: f"two each: {_partitions(first, setup)} {_partitions(second, setup)}")
    publish(setup, stream(2000, sources=32))
    _arrived(path, 2000, sink)
    for router in (first, second):
        assert router.metrics().value("hookbus_received_total", ingress="agents") > 0
    first.stop()
    until(lambda: len(_partitions(second, setup)) == 4, "the other one takes over")
    publish(setup, stream(500, sources=32, start=2000))
    _arrived(path, 2500, sink)
    assert by_source(_events(path)) == by_source(
        [json.loads(line) for line in stream(2500, sources=32)]
    )
    sink.stop()
    second.stop()
