"""Several processes as one service: what happens when one of them dies, or all have to stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hookbus.router import build_bus
from hookbus.router.configuration import config_file
from hookbus.router.errors import TopicsMissing
from tests.processes import (
    PATIENCE,
    BusKind,
    Metrics,
    Processes,
    Service,
    Setup,
    by_source,
    lines,
    publish,
    stream,
    until,
)


@pytest.fixture
def single(tmp_path: Path) -> Setup:
    """A setup on the embedded bus, where nothing that a broker does matters."""
    return _with_workers(Setup(BusKind("sqlite"), tmp_path))


def _with_workers(setup: Setup) -> Setup:
    """Two workers, one route, one file."""
    setup.route("archive", capture="full")
    setup.route("siem", {"source": "urn:example:agent:1"})
    setup.file_sink("archive", "archive", "failures")
    setup.journal_only("archive")
    setup.tree["workers"] = 2
    setup.write()
    return setup


def _archived(setup: Setup) -> list[bytes]:
    return lines(setup.folder / "archive.jsonl")


def _arrived(setup: Setup, count: int, service: Service) -> None:
    """Wait for so many different events."""
    until(
        lambda: len(set(_archived(setup))) >= count,
        lambda: f"{count} events; {len(set(_archived(setup)))} are there; {service.stderr}",
    )


def _passed_everything(metrics: Metrics) -> bool:
    """Whether each partition of the ingress, and of the route, the failures and the replays of the
    sink, is shown, and without lag."""
    shown = metrics.labels("hookbus_lag", "partition")
    return len(shown) == 4 * 4 and metrics.total("hookbus_lag") == 0


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


class Watcher:
    """Looks at the metrics, and remembers by how much a counter has ever gone backwards."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._before: dict[str, float] = {}
        self.backwards: list[str] = []
        self.unbalanced: list[str] = []

    def look(self) -> Metrics:
        metrics = self._service.metrics()
        counters = {
            line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in metrics.text.splitlines()
            if line.startswith("hookbus_") and any(e in line for e in ("_total{", "_count", "_sum"))
        }
        self.backwards += [name for name, v in self._before.items() if counters.get(name, 0) < v]
        self._before = counters
        for route in ("archive", "siem"):
            decided = metrics.by("hookbus_route_events_total", "decision", route=route)
            in_hand = metrics.value("hookbus_in_flight", loop="router")
            abandoned = metrics.value("hookbus_abandoned_total", loop="router")
            received = metrics.value("hookbus_received_total", ingress="agents")
            if sum(decided.values()) + in_hand + abandoned != received:
                self.unbalanced.append(f"{route}: {received} {decided} {in_hand} {abandoned}")
        return metrics


def test_a_worker_that_is_killed_is_started_again_and_nothing_is_lost(
    setup: Setup, processes: Processes
) -> None:
    """The counters of all together go on, and the balance holds at each look."""
    _with_workers(setup)
    service = processes.run(setup).ready()
    watcher = Watcher(service)
    sent = stream(6000, sources=32)
    publish(setup, sent[:4000])
    until(lambda: watcher.look().value("hookbus_received_total", ingress="agents"), "work")
    victims = service.workers()
    os.kill(victims["router-1"], signal.SIGKILL)
    until(lambda: service.workers()["router-1"] != victims["router-1"], "another router")
    os.kill(victims["sinks"], signal.SIGKILL)
    until(lambda: watcher.look().by("hookbus_worker_restarts_total", "worker") == {
        "router-1": 1, "sinks": 1,
    }, lambda: f"both restarts counted: {service.stderr}")  # fmt: skip
    publish(setup, sent[4000:])
    _arrived(setup, len(sent), service)
    service.ready()
    until(lambda: watcher.look().value("hookbus_in_flight", loop="router") == 0, "nothing in hand")
    until(lambda: _passed_everything(watcher.look()), "no lag")
    assert watcher.backwards == []
    assert watcher.unbalanced == []
    first: dict[bytes, None] = dict.fromkeys(_archived(setup))
    assert by_source([json.loads(line) for line in first]) == by_source(
        [json.loads(line) for line in sent]
    )
    service.stop()


def test_two_workers_share_the_partitions_and_show_each_series_once(
    single: Setup, processes: Processes
) -> None:
    service = processes.run(single).ready()

    def partitions() -> list[str]:
        found = service.metrics().labels("hookbus_lag", "partition")
        return sorted(n for n, at in found if at["topic"] == single.topic("in"))

    until(lambda: partitions() == ["0", "1", "2", "3"], lambda: f"all lags: {partitions()}")
    publish(single, stream(800, sources=32))
    _arrived(single, 800, service)
    until(
        lambda: service.metrics().value("hookbus_received_total", ingress="agents") >= 800,
        "all counted",
    )
    names = [line.rpartition(" ")[0] for line in service.metrics().text.splitlines()]
    series = [name for name in names if not name.startswith("#")]
    assert len(series) == len(set(series))
    helped = [name for name in names if name.startswith("# HELP hookbus_received_total")]
    assert len(helped) == 1
    service.stop()


def test_a_stop_ends_all_processes(single: Setup, processes: Processes) -> None:
    service = processes.run(single).ready()
    service.stop()
    assert [name for name, pid in service.workers().items() if not _gone(pid)] == []


def test_a_stop_while_the_workers_are_starting_is_clean(
    single: Setup, processes: Processes
) -> None:
    service = processes.run(single)
    until(lambda: len(service.workers()) == 3, "three processes")
    service.stop()
    assert [name for name, pid in service.workers().items() if not _gone(pid)] == []


def test_the_workers_of_a_supervisor_that_is_killed_settle_and_end(
    single: Setup, processes: Processes
) -> None:
    service = processes.run(single).ready()
    sent = stream(6000)
    publish(single, sent)
    _arrived(single, 100, service)
    service.kill()
    until(lambda: all(map(_gone, service.workers().values())), lambda: f"gone: {service.stderr}")
    ends = [line["worker"] for line in service.logs if line["message"] == "stopped"]
    assert sorted(ends) == ["router-1", "router-2", "sinks"]
    again = processes.run(single).ready()
    _arrived(single, len(sent), again)
    until(lambda: _passed_everything(again.metrics()), "nothing left to come twice")
    assert len(_archived(single)) == len(sent), "something came twice"
    again.stop()


def test_a_service_is_not_ready_while_one_of_its_workers_is_not(
    single: Setup, processes: Processes
) -> None:
    service = processes.run(single).ready()
    bus = sqlite3.connect(single.folder / "bus.db", timeout=PATIENCE, isolation_level=None)
    with closing(bus):
        bus.execute("BEGIN IMMEDIATE")  # its successor can't join, so it is seen however late
        os.kill(service.workers()["router-2"], signal.SIGKILL)
        until(lambda: _WHYS & _unready(service), lambda: f"not ready: {service.get('/readyz')}")
        assert service.get("/healthz") == (200, "ok\n")
    service.ready().stop()


_WHYS = {
    "router-2: not running",
    "router-2: starting",
    "router-2: router: not joined, or the bus does not answer",
}


def _unready(service: Service) -> set[str]:
    """Why the service is not ready."""
    status, said = service.get("/readyz")
    return set(said.splitlines()) if status == 503 else set()


def test_a_worker_that_can_not_start_ends_all_with_its_code(
    single: Setup, processes: Processes
) -> None:
    """And with the reason of the one that found out first: a router, or the sinks."""
    del single.tree["bus"]["create_topics"]
    single.write()
    service = processes.run(single)
    assert service.wait() == 3
    config = config_file.load(single.file)
    router, sinks = (
        TopicsMissing(topics)
        for topics in (
            [*build_bus.topics(config, sinks=()), *build_bus.changelogs(config)],
            build_bus.topics(config, router=False),
        )
    )
    assert str(router) in service.stderr or str(sinks) in service.stderr


def test_a_worker_of_another_version_does_not_start_and_says_so(single: Setup) -> None:
    """As after an upgrade of the files of a service that runs: what is installed comes first on the
    path here, and changes."""
    installed = single.folder / "site"
    metadata = installed / "hookbus-0.1.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    described = "Metadata-Version: 2.1\nName: hookbus\nVersion: {}\n"
    metadata.write_text(described.format("0.1.0"))
    path = {"PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    with Processes(path) as processes:
        service = processes.run(single).ready()
        metadata.write_text(described.format("0.2.0"))
        os.kill(service.workers()["router-1"], signal.SIGKILL)
        assert service.wait() == 3
    assert service.logged(
        "the supervisor is another version of hookbus, or gone; restart the service"
    )


def test_a_worker_with_a_fatal_fault_ends_all_with_its_code(
    single: Setup, processes: Processes
) -> None:
    service = processes.run(single).ready()
    with sqlite3.connect(single.folder / "bus.db") as bus:
        bus.execute("DROP TABLE positions")
    bus.close()
    assert service.wait() == 4
    assert [name for name, pid in service.workers().items() if not _gone(pid)] == []


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a backend that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hooks"


def test_a_second_signal_ends_all_processes_at_once(
    single: Setup, processes: Processes, silent: str
) -> None:
    single.sink("silent", "archive", http={"url": silent}, timeout="1h")
    single.tree["shutdown_grace"] = "1h"
    single.write()
    publish(single, stream(20))
    service = processes.run(single)
    until(lambda: service.metrics().by("hookbus_in_flight", "loop").get("sink:silent"), "stuck")
    service.terminate()
    until(lambda: service.logged("stopping"), "the first signal seen")
    service.terminate()
    assert service.wait() == 4
    until(lambda: all(map(_gone, service.workers().values())), "gone")


def test_only_the_router_runs_in_several_processes(single: Setup, processes: Processes) -> None:
    routers = processes.run(single, "--only", "router").ready()
    sink = processes.run(single, "--only", "sink:archive").ready()
    publish(single, stream(100))
    _arrived(single, 100, sink)
    assert sorted(routers.workers()) == ["router-1", "router-2"]
    assert sink.workers() == {}
    routers.stop()
    sink.stop()
