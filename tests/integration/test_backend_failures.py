"""Backends that refuse, fail and come back: what is skipped, what waits, and who hears of it."""

from __future__ import annotations

import json
from typing import Any

from hookbus.router.types import Record
from tests.brokers import free_port
from tests.official import official_server
from tests.processes import (
    Processes,
    Setup,
    by_source,
    journal,
    lines,
    publish,
    stream,
    tail,
    until,
)

JSON = dict[str, Any]


def _events(values: list[bytes]) -> list[JSON]:
    return [json.loads(value) for value in values]


def _failure_of(record: Record) -> JSON:
    failure: JSON = json.loads(record.value or b"")["failure"]
    return failure


def test_a_fail_closed_sink_goes_on_where_it_stopped_when_its_backend_is_back(
    setup: Setup, processes: Processes
) -> None:
    port = free_port()
    setup.route("siem", capture="metadata")
    setup.sink(
        "siem",
        "siem",
        http={"url": f"http://127.0.0.1:{port}/siem"},
        deadline="200ms",
        retry={"initial": "20ms", "maximum": "300ms"},
    )
    audit = setup.file_sink("audit", "failures")
    setup.journal_only("audit")
    setup.write()
    sent = stream(40, sources=1)
    publish(setup, sent)
    service = processes.run(setup)
    until(lambda: lines(audit), lambda: f"the failure recorded: {service.stderr}")
    until(lambda: service.metrics().value("hookbus_sink_stopped", sink="siem") == 1, "stopped")
    with official_server(port) as server:
        until(lambda: len(server.received.get("/siem", [])) == 40, "all events")
        until(lambda: service.metrics().value("hookbus_sink_stopped", sink="siem") == 0, "going")
        service.stop()
        assert by_source(server.received["/siem"]) == by_source(_events(sent))
    (failure,) = _events(lines(audit))
    assert failure["parentEventId"] == "evt-000000"
    assert tail(setup, "dead") == []


def test_a_refused_event_is_dead_lettered_at_once_and_the_next_ones_arrive(
    setup: Setup, processes: Processes
) -> None:
    del setup.tree["routes"]
    with official_server() as server:
        setup.sink("policy", "in", http={"url": server.url("/policy")})
        audit = setup.file_sink("audit", "failures")
        setup.journal_only("audit")
        setup.write()
        good = stream(6, sources=1)
        bad = json.dumps({**json.loads(good[2]), "type": "tool.teleport"}).encode()
        publish(setup, [*good[:2], bad, *good[3:]])
        service = processes.run(setup)
        until(lambda: len(server.received.get("/policy", [])) == 5, lambda: service.stderr)
        until(lambda: lines(audit), "the failure recorded")
        service.stop()
        assert server.refused == 1
    (letter,) = _events(tail(setup, "dead"))
    assert (letter["stage"], letter["sink"], letter["reason"], letter["fault"]) == (
        "sink", "policy", "refused", "message_fault",
    )  # fmt: skip
    (failure,) = _events(lines(audit))
    # No router has judged this value, and yet it says whose event it is.
    refused = json.loads(bad)
    assert (failure["source"], failure["parentEventId"]) == (refused["source"], refused["id"])
    assert failure["failure"]["reason"] == "refused"


def _reported(backend: str) -> bytes:
    """A failure that a harness reports of its own backend."""
    return json.dumps(
        {
            "id": f"evt-{backend}",
            "source": "urn:example:agent:0",
            "type": "hook.failure",
            "time": "2026-03-12T09:14:02Z",
            "harness": {"name": "atlas-code", "version": "2.3.1"},
            "session": {"id": "ses-0"},
            "parentEventId": "evt-000000",
            "failure": {"backendId": backend, "reason": "timeout", "policy": "fail-open"},
        }
    ).encode()


def test_a_failure_that_a_harness_reports_goes_to_every_audit_sink_but_the_named_one(
    setup: Setup, processes: Processes
) -> None:
    setup.route("forms", {"type": ["user.elicitation.*"]})
    one = setup.file_sink("com.example.one", "failures")
    other = setup.file_sink("com.example.other", "failures")
    setup.write()
    publish(setup, [_reported("com.example.one"), _reported("com.example.stranger")])
    service = processes.run(setup)
    until(lambda: len(lines(other)) == 2, lambda: service.stderr)
    until(lambda: len(lines(one)) == 1, "the stranger's failure")

    def decided() -> dict[str, float]:
        return service.metrics().by("hookbus_route_events_total", "decision", route="forms")

    until(lambda: decided() == {"unmatched": 2}, lambda: f"both counted: {decided()}")
    service.stop()
    assert [e["failure"]["backendId"] for e in _events(lines(one))] == ["com.example.stranger"]


def test_a_failure_that_cannot_be_delivered_starts_no_chain(
    setup: Setup, processes: Processes
) -> None:
    setup.route("siem", capture="metadata")
    gone: JSON = {
        "http": {"url": f"http://127.0.0.1:{free_port()}/hooks"},
        "deadline": "100ms",
        "retry": {"initial": "20ms", "maximum": "50ms"},
    }
    setup.sink("siem", "siem", policy="fail-open", **gone)
    setup.sink("audit", "failures", policy="fail-open", **gone)
    audit = setup.file_sink("archive", "failures")
    setup.journal_only("archive")
    setup.write()
    publish(setup, stream(5, sources=1))
    service = processes.run(setup)
    until(
        lambda: service.metrics().value(
            "hookbus_sink_records_total", sink="audit", outcome="dead_lettered"
        ) == 5,
        lambda: f"the audit gives up: {service.stderr}",
    )  # fmt: skip
    until(lambda: len(lines(audit)) == 5, "the other audit has them")
    service.stop()
    assert {_failure_of(record)["backendId"] for record in journal(setup, "failures")} == {"siem"}
    kept = journal(setup, "failures.kept")
    assert [_failure_of(record)["backendId"] for record in kept] == ["audit"] * 5
