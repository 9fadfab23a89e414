"""SIGHUP: the service goes over to another configuration, or says why not and goes on."""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import suppress
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
    command,
    lines,
    publish,
    stream,
    tail,
    until,
)

JSON = dict[str, Any]


@pytest.fixture
def single(tmp_path: Path) -> Setup:
    """A setup on the embedded bus, where nothing that a broker does matters."""
    return _archiving(Setup(BusKind("sqlite"), tmp_path))


def _archiving(setup: Setup) -> Setup:
    """One route to one file."""
    setup.route("archive", capture="full")
    setup.file_sink("archive", "archive", "failures")
    setup.journal_only("archive")
    setup.write()
    return setup


def _events(setup: Setup, sink: str) -> list[JSON]:
    return [json.loads(line) for line in lines(setup.folder / f"{sink}.jsonl")]


def _arrived(setup: Setup, sink: str, count: int, service: Service) -> None:
    until(
        lambda: len(_events(setup, sink)) >= count,
        lambda: f"{count} at {sink}; {len(_events(setup, sink))} are there; {service.stderr}",
    )


def _sent(events: list[bytes]) -> list[JSON]:
    return [json.loads(line) for line in events]


def _reload(setup: Setup, service: Service, message: str) -> JSON:
    """Write the configuration and have it read; expect this of the log."""
    setup.write()
    said = service.reload()
    assert said["message"] == message, said
    return said


def _apply(setup: Setup, service: Service) -> list[str]:
    """What has changed."""
    found: list[str] = _reload(setup, service, "configuration applied")["changed"]
    return found


def _refuse(setup: Setup, service: Service) -> list[str]:
    """Why it is refused."""
    found: list[str] = _reload(
        setup, service, "configuration refused, the running one stays"
    )["why"]  # fmt: skip
    return found


def test_a_filter_that_changes_while_events_flow_loses_none(
    setup: Setup, processes: Processes
) -> None:
    """The other route has all; this one has those after the change, in order and without a gap."""
    setup.tree["workers"] = 2
    setup.route("picked", {"type": "tool.*"}, capture="full")
    setup.file_sink("picked", "picked")
    _archiving(setup)
    service = processes.run(setup).ready()
    sent = stream(4000, sources=16)
    publish(setup, sent[:2000])
    _arrived(setup, "archive", 200, service)
    setup.tree["routes"]["picked"]["match"] = {"type": "user.*"}
    assert _apply(setup, service) == ["routes.picked.match"]
    publish(setup, sent[2000:])
    _arrived(setup, "archive", 4000, service)
    _arrived(setup, "picked", 2000, service)
    assert by_source(_events(setup, "archive")) == by_source(_sent(sent))

    def decided() -> dict[str, float]:
        return service.metrics().by("hookbus_route_events_total", "decision", route="picked")

    until(lambda: sum(decided().values()) == len(sent), lambda: f"all decided: {decided()}")
    _arrived(setup, "picked", int(decided()["routed"]), service)
    picked, whole = by_source(_events(setup, "picked")), by_source(_sent(sent))
    assert {source: whole[source][-len(ids) :] for source, ids in picked.items()} == picked
    assert len(_events(setup, "picked")) == decided()["routed"] >= 2000
    service.stop()


def test_a_sink_comes_and_goes_and_the_others_stay(setup: Setup, processes: Processes) -> None:
    """With it go its membership and its series."""
    _archiving(setup)
    service = processes.run(setup).ready()
    publish(setup, stream(100))
    _arrived(setup, "archive", 100, service)
    setup.file_sink("copy", "archive")
    assert _apply(setup, service) == ["sinks.copy (added)"]
    _arrived(setup, "copy", 100, service)
    until(lambda: _lag_of(service, "sink:copy"), "its lag")
    del setup.tree["sinks"]["copy"]
    assert _apply(setup, service) == ["sinks.copy (removed)"]
    until(lambda: "sink:copy" not in service.metrics().text, "no series of it")
    assert '"copy"' not in service.metrics().text
    publish(setup, stream(100, start=100))
    _arrived(setup, "archive", 200, service)
    assert len(_events(setup, "copy")) == 100
    service.ready().stop()


def _lag_of(service: Service, loop: str) -> bool:
    return any(name == loop for name, _ in service.metrics().labels("hookbus_lag", "loop"))


def test_a_sink_that_comes_back_goes_on_where_it_was(single: Setup, processes: Processes) -> None:
    """It had settled what it had in hand when it went."""
    single.file_sink("copy", "archive")
    single.write()
    service = processes.run(single)
    publish(single, stream(3000))
    _arrived(single, "copy", 10, service)
    copy = single.tree["sinks"].pop("copy")
    _apply(single, service)
    _arrived(single, "archive", 3000, service)
    single.tree["sinks"]["copy"] = copy
    _apply(single, service)
    _arrived(single, "copy", 3000, service)
    assert by_source(_events(single, "copy")) == by_source(_sent(stream(3000)))
    service.stop()


def test_a_sink_s_backend_can_be_corrected_while_it_holds_up_events(
    single: Setup, processes: Processes
) -> None:
    """A fail-closed sink with a wrong address has stopped; with the right one it goes on, and
    doesn't show as stopped any more."""
    http = {"url": f"http://127.0.0.1:{free_port()}/hooks"}
    single.sink("siem", "archive", http=http, deadline="1ms")
    single.write()
    service = processes.run(single)
    publish(single, stream(50))
    until(lambda: service.metrics().value("hookbus_sink_stopped", sink="siem"), "stopped")
    assert service.metrics().value("hookbus_sink_up", sink="siem") == 0
    del single.tree["sinks"]["siem"]
    path = single.file_sink("siem", "archive", deadline="1ms")
    assert _apply(single, service) == ["sinks.siem.http", "sinks.siem.file"]
    _arrived(single, "siem", 50, service)
    assert path.exists()
    until(lambda: service.metrics().value("hookbus_sink_up", sink="siem") == 1, "up")
    assert service.metrics().value("hookbus_sink_stopped", sink="siem") == 0
    service.ready().stop()


def test_terms_and_failure_domains_change_without_leaving_the_group(
    single: Setup, processes: Processes
) -> None:
    """A fail-closed sink that has stopped gives its events up once it is fail-open, and the audit
    sink that is of its domain from now on doesn't hear of it."""
    http = {"url": f"http://127.0.0.1:{free_port()}/hooks"}
    single.sink(
        "broken", "archive", http=http, deadline="1ms",
        retry={"initial": "10ms", "maximum": "50ms"},
    )  # fmt: skip
    single.file_sink("audit", "failures")
    single.write()
    service = processes.run(single)
    publish(single, stream(1))
    until(lambda: service.metrics().value("hookbus_sink_stopped", sink="broken") == 1, "stopped")
    _arrived(single, "audit", 1, service)
    for name in ("broken", "audit"):
        single.tree["sinks"][name]["failure_domain"] = "rack"
    single.tree["sinks"]["broken"]["policy"] = "fail-open"
    _apply(single, service)
    until(lambda: len(tail(single, "dead")) == 1, "given up")
    assert service.metrics().value("hookbus_sink_stopped", sink="broken") == 0
    publish(single, stream(1, start=1))
    until(lambda: len(tail(single, "dead")) == 2, "given up too")
    until(lambda: len(_events(single, "archive")) == 4, "two events, two failures")
    until(
        lambda: service.metrics().value(
            "hookbus_sink_records_total", sink="audit", outcome="excluded"
        ),
        "excluded",
    )
    assert len(_events(single, "audit")) == 1
    service.stop()


def test_a_line_that_was_torn_before_a_reload_is_ended_after_it(
    single: Setup, processes: Processes
) -> None:
    """Nobody reads the standard output, until another run of its sink has followed the first."""
    single.route("other")
    single.sink("printed", "archive", stdout={}, timeout="100ms")
    single.write()
    output = single.folder / "run-0.out"
    os.mkfifo(output)
    reader = os.open(output, os.O_RDONLY | os.O_NONBLOCK)
    service = processes.run(single)
    publish(single, [_wide(event) for event in stream(4)])

    def torn() -> float:
        return service.metrics().value(
            "hookbus_sink_faults_total", sink="printed", reason="timeout"
        )

    until(torn, lambda: f"a line torn: {service.stderr}")
    single.tree["sinks"]["printed"]["topics"].append(single.topic("other"))
    assert _apply(single, service) == ["sinks.printed.topics"]
    single.tree["sinks"]["printed"]["timeout"] = "60s"
    assert _apply(single, service) == ["sinks.printed.timeout"]
    printed = b""

    def ids() -> set[str]:
        nonlocal printed
        with suppress(BlockingIOError):
            printed += os.read(reader, 2**20)
        return {json.loads(line)["id"] for line in printed.rpartition(b"\n")[0].splitlines()}

    until(lambda: len(ids()) == 4, lambda: f"all printed: {service.stderr}")
    os.close(reader)
    service.stop()


def _wide(event: bytes) -> bytes:
    """Wider than a pipe."""
    return event.replace(b"Is claim", b"x" * 200_000)


def test_routes_come_and_go_with_their_series(single: Setup, processes: Processes) -> None:
    single.route("siem", capture="metadata")
    single.write()
    service = processes.run(single).ready()
    publish(single, stream(10))
    _arrived(single, "archive", 10, service)
    del single.tree["routes"]["siem"]
    single.route("pulse", capture="none")
    assert _apply(single, service) == ["routes.siem (removed)", "routes.pulse (added)"]
    until(lambda: 'route="siem"' not in service.metrics().text, "no series of the old one")
    publish(single, stream(10, start=10))
    until(lambda: len(tail(single, "pulse")) == 10, "copies of the new one")
    assert len(tail(single, "siem")) == 10

    def decided() -> dict[str, float]:
        return service.metrics().by("hookbus_route_events_total", "decision", route="pulse")

    until(lambda: decided() == {"routed": 10}, lambda: f"all counted: {decided()}")
    service.stop()


def test_a_secret_that_is_listed_while_the_service_runs_is_redacted_from_then_on(
    single: Setup, processes: Processes
) -> None:
    """The configuration is the same; the file that it names has changed."""
    listed = single.folder / "listed"
    listed.write_text("nothing-of-interest\n")
    single.tree["redaction"] = {"secrets_file": str(listed)}
    single.route("clean", capture="redacted", redact=True)
    single.write()
    service = processes.run(single).ready()
    publish(single, stream(1))
    until(lambda: len(tail(single, "clean")) == 1, "a copy")
    assert b"claim 0 paid" in tail(single, "clean")[0]
    _reload(single, service, "configuration unchanged")
    listed.write_text("claim 1 paid\n")
    assert _apply(single, service) == ["redaction.secrets_file (content)"]
    publish(single, stream(1, start=1))
    until(lambda: len(tail(single, "clean")) == 2, "another copy")
    assert not any(b"claim 1 paid" in copy for copy in tail(single, "clean"))
    service.stop()


@pytest.mark.parametrize("workers", [1, 2])
def test_what_needs_a_restart_is_refused_with_every_reason_and_the_service_goes_on(
    single: Setup, processes: Processes, workers: int
) -> None:
    single.tree["workers"] = workers
    single.write()
    service = processes.run(single).ready()
    single.tree["bus"]["sqlite"]["path"] = str(single.folder / "other.db")
    single.tree["ingress"]["agents"]["topics"].append("more")
    single.tree["failures"]["journal"] = str(single.folder / "other-journal.db")
    single.tree["workers"] = 3
    single.route("siem")
    reasons = _refuse(single, service)
    assert [reason.partition(":")[0] for reason in reasons] == [
        "bus.sqlite.path",
        "ingress.agents.topics",
        "failures.journal",
        "workers",
    ]
    assert service.metrics().value("hookbus_config_last_reload_successful") == 0
    assert 'route="siem"' not in service.metrics().text
    service.stop()


def test_a_broken_file_is_refused_with_all_its_problems_and_the_service_goes_on(
    single: Setup, processes: Processes
) -> None:
    service = processes.run(single).ready()
    single.route("siem", {"type": ["user.elicitatoin.*"]})
    single.tree["sinks"]["archive"]["polcy"] = "fail-open"
    single.tree["sinks"]["archive"]["timeout"] = "soon"
    reasons = "\n".join(_refuse(single, service))
    assert "sinks.archive.polcy: unknown key; did you mean policy?" in reasons
    assert "sinks.archive.timeout: expected a duration" in reasons
    single.file.write_text("routes: [")
    assert service.reload()["message"] == "configuration refused, the running one stays"
    metrics = service.metrics()
    assert metrics.by("hookbus_config_reloads_total", "result") == {"refused": 2}
    assert metrics.value("hookbus_config_last_reload_successful") == 0
    del single.tree["routes"]["siem"]
    for key in ("polcy", "timeout"):
        del single.tree["sinks"]["archive"][key]
    _reload(single, service, "configuration unchanged")
    assert service.metrics().value("hookbus_config_last_reload_successful") == 1
    publish(single, stream(10))
    _arrived(single, "archive", 10, service)
    service.stop()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_configuration_that_can_not_be_carried_out_is_refused_whole(
    single: Setup, processes: Processes, workers: int
) -> None:
    """A certificate that isn't there, a file of somebody else, a secret that isn't set: found
    before anything changes, in whichever process it is found."""
    single.tree["workers"] = workers
    single.write()
    service = processes.run(single).ready()
    tree = json.dumps(single.tree)
    single.route("siem")
    https = {"url": "https://siem.example/hooks", "ca_file": str(single.folder / "none.pem")}
    single.sink("siem", "siem", http=https)
    (reason,) = _refuse(single, service)
    assert reason == "sinks.siem.http: a certificate can't be read"
    single.tree = json.loads(tree)
    single.route("clean", capture="redacted", redact=True)
    single.tree["redaction"] = {"secrets": [{"env": "HOOKBUS_NOT_SET"}]}
    (reason,) = _refuse(single, service)
    assert reason == ("redaction.secrets[0]: environment variable HOOKBUS_NOT_SET can't be read")
    single.tree = json.loads(tree)
    single.route("archive", {"type": "tool.*"}, capture="full")
    _apply(single, service)
    assert service.metrics().by("hookbus_config_reloads_total", "result") == {
        "refused": 2, "applied": 1,
    }  # fmt: skip
    service.stop()


def test_missing_topics_are_refused_where_none_may_be_created(
    single: Setup, processes: Processes
) -> None:
    command("publish", "-c", str(single.file), "--ingress", "agents", stdin=b"")
    processes.run(single).ready().stop()  # which creates what is there so far
    del single.tree["bus"]["create_topics"]
    single.write()
    service = processes.run(single).ready()
    single.route("siem")
    (reason,) = _refuse(single, service)
    assert single.topic("siem") in reason
    service.stop()


def test_a_registration_document_is_read_again(single: Setup, processes: Processes) -> None:
    document = single.folder / "registration.json"

    def register(*events: str) -> None:
        content = {"default": "metadata"}
        backend = {
            "id": "com.example.policy",
            "transport": {"type": "http", "url": "https://policy.example/hooks"},
            "subscriptions": [{"events": list(events), "mode": "observe", "content": content}],
        }
        document.write_text(json.dumps({"protocolVersion": "draft", "hooks": [backend]}))

    register("tool.before")
    service = processes.run(single, "--registration", str(document)).ready()
    register("tool.before", "tool.after")
    assert _apply(single, service) == ["routes.com.example.policy.0.match"]
    document.write_text("{}")
    assert all(str(document) in reason for reason in _refuse(single, service))
    service.stop()


def test_a_worker_that_is_stopped_has_no_say_in_a_reload(
    single: Setup, processes: Processes
) -> None:
    """It doesn't get ready for it any more; the next one starts under the new configuration."""
    single.tree |= {"workers": 2, "shutdown_grace": "1h"}
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/hooks"
        single.sink("silent", "archive", http={"url": url}, timeout="1h")
        single.write()
        service = processes.run(single).ready()
        publish(single, stream(20))
        until(lambda: _in_flight(service, "sink:silent"), "stuck")
        del single.tree["sinks"]["silent"]
        _apply(single, service)  # what comes next waits until it has gone
        single.file_sink("late", "archive")
        single.write()
        service.signal(signal.SIGHUP)
        os.kill(service.workers()["sinks"], signal.SIGTERM)
    _arrived(single, "late", 20, service)
    assert [line["message"] for line in service.logs if line["logger"] == "hookbus.reload"] == [
        "configuration applied",
        "configuration applied",
    ]
    service.stop()


def _in_flight(service: Service, loop: str) -> float:
    return service.metrics().by("hookbus_in_flight", "loop").get(loop, 0)


def test_workers_get_their_first_sink_and_lose_their_last_one_by_a_reload(
    single: Setup, processes: Processes
) -> None:
    """The process of the sinks comes and goes with them."""
    single.tree["workers"] = 2
    sink = single.tree["sinks"].pop("archive")
    single.tree["failures"]["journal_only"] = []
    single.write()
    service = processes.run(single).ready()
    assert sorted(service.workers()) == ["router-1", "router-2"]
    publish(single, stream(50))
    single.tree["sinks"]["archive"] = sink
    single.journal_only("archive")
    _apply(single, service)
    _arrived(single, "archive", 50, service)
    assert sorted(service.workers()) == ["router-1", "router-2", "sinks"]
    del single.tree["sinks"]["archive"]
    single.tree["failures"]["journal_only"] = []
    _apply(single, service)
    until(lambda: "sink:archive" not in service.metrics().text, "no series of it")
    service.ready().stop()
    assert "a worker has ended" not in service.stderr
