"""Recorded failures: how many there are after an outage and a restart, and how they are listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import free_port
from tests.processes import (
    BusKind,
    Processes,
    Setup,
    command,
    journal,
    lines,
    publish,
    stream,
    tail,
    until,
)

JSON = dict[str, Any]


def _gone(setup: Setup, policy: str) -> None:
    """A sink whose backend isn't there."""
    setup.route("siem")
    setup.sink(
        "siem",
        "siem",
        policy=policy,
        http={"url": f"http://127.0.0.1:{free_port()}/siem"},
        deadline="100ms",
        retry={"initial": "5ms", "maximum": "20ms"},
    )


def _listed(setup: Setup, *options: str) -> list[JSON]:
    done = command("failures", "list", "-c", str(setup.file), *options)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def audited(setup: Setup) -> Setup:
    """A setup with an audit sink whose own failures the journal keeps."""
    setup.file_sink("audit", "failures")
    setup.journal_only("audit")
    return setup


def test_a_stop_that_outlives_the_process_is_one_failure(
    audited: Setup, processes: Processes
) -> None:
    _gone(audited, "fail-closed")
    audited.write()
    publish(audited, stream(300, sources=1))
    for last in (False, False, True):
        service = processes.run(audited)
        until(
            lambda: service.metrics().value("hookbus_sink_stopped", sink="siem") == 1,  # noqa: B023
            lambda: f"the sink stops: {service.stderr}",  # noqa: B023
        )
        if not last:
            service.kill()
    until(lambda: tail(audited, "failures"), lambda: f"the failure forwarded: {service.stderr}")
    service.stop()
    assert len(journal(audited, "failures")) == 1
    (failure,) = _listed(audited)
    assert failure["parentEventId"] == "evt-000000"
    assert failure["recorded"] == ["journal", "topic"]


def test_an_outage_under_fail_open_is_one_failure_for_each_event_that_was_skipped(
    audited: Setup, processes: Processes
) -> None:
    _gone(audited, "fail-open")
    audited.write()
    publish(audited, stream(200))
    service = processes.run(audited)
    audit = audited.folder / "audit.jsonl"
    until(lambda: len(lines(audit)) >= 200, lambda: service.stderr)
    service.stop()
    assert len(journal(audited, "failures")) == 200
    failures = _listed(audited)
    assert len({failure["parentEventId"] for failure in failures}) == len(failures) == 200
    assert len(tail(audited, "dead")) == 200


def test_the_list_says_where_each_failure_is_recorded(setup: Setup, processes: Processes) -> None:
    _gone(setup, "fail-open")
    setup.route("own", {"type": ["user.message.*"]})
    setup.sink(
        "quiet",
        "own",
        policy="fail-open",
        http={"url": f"http://127.0.0.1:{free_port()}/quiet"},
        deadline="50ms",
    )
    audit = setup.file_sink("audit", "failures")
    setup.journal_only("audit", "quiet")
    setup.write()
    (event,) = stream(1)
    reported = {
        **json.loads(event),
        "id": "evt-reported",
        "type": "hook.failure",
        "parentEventId": "evt-x",
        "failure": {"backendId": "stranger", "reason": "timeout", "policy": "fail-open"},
    }
    del reported["message"]
    publish(setup, [event, json.dumps(reported).encode()])
    service = processes.run(setup)
    until(lambda: len(lines(audit)) >= 2, lambda: service.stderr)
    until(lambda: len(journal(setup, "failures.kept")) >= 2, lambda: service.stderr)
    service.stop()
    found = {(one["sink"], one["parentEventId"]): one for one in _listed(setup)}
    assert {key: one["recorded"] for key, one in found.items()} == {
        ("siem", "evt-000000"): ["journal", "topic"],
        ("siem", "evt-reported"): ["journal_only"],
        ("quiet", "evt-000000"): ["journal_only"],
        ("stranger", "evt-x"): ["topic"],
    }
    one = found["siem", "evt-000000"]
    assert (one["policy"], one["source"]) == ("fail-open", "urn:example:agent:0")
    assert one["reason"]
    assert len(_listed(setup, "--sink", "siem")) == 2
    assert len(_listed(setup, "--journal-only")) == 3
    assert len(_listed(setup, "--since", "1h")) == 4
    assert _listed(setup, "--until", "1h") == []
    assert "Maya Okonkwo" not in json.dumps(list(found.values()))


def test_the_list_makes_no_journal(tmp_path: Path) -> None:
    setup = Setup(BusKind("sqlite"), tmp_path)
    setup.write()
    done = command("failures", "list", "-c", str(setup.file), "--journal-only")
    assert done.stdout == b""
    assert json.loads(done.stderr)["found"] is False
    assert not setup.journal.exists()


def test_a_failure_that_is_set_aside_takes_no_other_record_with_it(
    bus: BusKind, tmp_path: Path, processes: Processes
) -> None:
    """Offsets tell records of one partition apart, and a sink may read many topics."""
    setup = Setup(bus, tmp_path, partitions=1)
    setup.route("siem", {"type": ["user.message.*"]})
    path = setup.file_sink("archive", "siem", "failures")
    setup.journal_only("archive")
    setup.write()
    reported = {
        **{key: value for key, value in json.loads(stream(1)[0]).items() if key != "message"},
        "type": "hook.failure",
        "parentEventId": "evt-x",
        "failure": {"backendId": "archive", "reason": "timeout", "policy": "fail-open"},
    }
    failures = [json.dumps({**reported, "id": f"evt-f{number}"}).encode() for number in range(20)]
    publish(setup, [*failures, *stream(20)])
    router = processes.run(setup, "--only", "router").ready()
    until(lambda: len(tail(setup, "siem")) == 20, lambda: router.stderr)
    router.stop()
    service = processes.run(setup, "--only", "sink:archive")
    until(lambda: len(lines(path)) == 20, lambda: f"all events: {service.stderr}")
    service.stop()
