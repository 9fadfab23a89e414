"""Agents' sessions from the official client to every kind of backend, on both buses.

Three agents play their sessions at once; what they send is published, routed at three levels, and
delivered to files, a topic and the official server. Two more backends are broken.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from agenthooksprotocol.runtime import Validator

from tests.brokers import free_port
from tests.official import OfficialServer, official_server
from tests.processes import (
    BusKind,
    Metrics,
    Processes,
    Setup,
    by_source,
    journal,
    lines,
    publish,
    records,
    tail,
    until,
)
from tests.session import script
from tests.session.play import play
from tests.session.recorder import recording

JSON = dict[str, Any]

SOURCES = tuple(f"https://agents.harborline.example/workstations/ws-{n}" for n in (114, 115, 207))
EVENTS = 24
"""Events of one session."""
LEVELS = {"pulse": "none", "siem": "metadata", "archive": "full"}


class Evidence:
    """What is left when everything has run: files, receipts, metrics, the journal."""

    def __init__(self, setup: Setup, sent: list[bytes], server: OfficialServer) -> None:
        self.setup = setup
        self.sent = sent
        self.server = server
        self.metrics = Metrics("")
        self.exit_code: int | None = None

    def file(self, sink: str) -> list[bytes]:
        return lines(self.setup.folder / f"{sink}.jsonl")

    def events(self, sink: str) -> list[JSON]:
        return [json.loads(line) for line in self.file(sink)]

    def failures(self, sink: str) -> list[JSON]:
        """The hook failures in a sink's file."""
        return [event for event in self.events(sink) if event["type"] == "hook.failure"]

    def journaled(self) -> list[JSON]:
        return [json.loads(record.value or b"") for record in journal(self.setup, "failures")]


async def _sessions() -> list[bytes]:
    async with recording() as recorder:
        await asyncio.gather(*(play(recorder.url, source=source) for source in SOURCES))
    return recorder.messages


@pytest.fixture(scope="module")
def evidence(bus: BusKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    setup = Setup(bus, tmp_path_factory.mktemp(bus.kind))
    with official_server() as server, Processes() as processes:
        _configure(setup, server)
        setup.write()
        found = Evidence(setup, asyncio.run(_sessions()), server)
        publish(setup, found.sent)
        service = processes.run(setup)
        until(lambda: _settled(service.metrics(), found), lambda: f"all settled: {service.stderr}")
        found.metrics = service.metrics()
        service.terminate()
        found.exit_code = service.wait()
        yield found


def _configure(setup: Setup, server: OfficialServer) -> None:
    for name, level in LEVELS.items():
        setup.route(name, capture=level)
        setup.sink(f"http-{name}", name, http={"url": server.url(f"/{name}")})
    setup.route("forms", {"type": ["user.elicitation.*"]}, capture="full")
    setup.file_sink("pulse", "pulse")
    setup.file_sink("siem", "siem")
    setup.file_sink("archive", "archive", "failures")
    setup.sink("copy", "siem", topic=setup.topic("copy"))
    broken = {
        "http": {"url": f"http://127.0.0.1:{free_port()}/hooks"},
        "deadline": "300ms",
        "retry": {"initial": "20ms", "maximum": "200ms"},
        "failure_domain": "lab",
    }
    setup.sink("lab-open", "forms", policy="fail-open", **broken)
    setup.sink("lab-closed", "forms", policy="fail-closed", **broken)
    setup.file_sink("lab-audit", "failures", failure_domain="lab")


def _settled(metrics: Metrics, found: Evidence) -> bool:
    """Whether every sink but the stopped one is done with everything."""
    count = len(found.sent)
    done = {
        name: sum(metrics.by("hookbus_sink_records_total", "outcome", sink=name).values())
        for name in found.setup.tree["sinks"]
    }
    failures = sum(
        metrics.by("hookbus_hook_failures_total", "reason", sink="lab-open").values()
    ) + sum(metrics.by("hookbus_hook_failures_total", "reason", sink="lab-closed").values())
    whole = ("pulse", "siem", "copy", *(f"http-{name}" for name in LEVELS))
    return (
        all(done[name] == count for name in whole)
        and done["lab-open"] == 2 * len(SOURCES)
        and failures == 2 * len(SOURCES) + metrics.value("hookbus_sink_stopped", sink="lab-closed")
        and done["archive"] == count + failures
        and done["lab-audit"] == failures
        and metrics.value("hookbus_sink_stopped", sink="lab-closed") == _lanes(found)
    )


def _lanes(found: Evidence) -> int:
    """How many partitions hold the forms: the stopped sink waits at each."""
    return len({partition for partition, _ in _places(found.setup, "forms")})


def _places(setup: Setup, topic: str) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in records(setup, topic)]


def _inner(message: bytes) -> JSON:
    event: JSON = json.loads(message)["params"]["event"]
    return event


@pytest.mark.parametrize("name", LEVELS)
def test_every_file_has_each_event_once_in_the_order_of_its_source(
    evidence: Evidence, name: str
) -> None:
    delivered = [event for event in evidence.events(name) if event["type"] != "hook.failure"]
    assert by_source(delivered) == by_source([_inner(message) for message in evidence.sent])


@pytest.mark.parametrize("name", LEVELS)
def test_the_official_server_receives_each_event_once_in_order_and_refuses_none(
    evidence: Evidence, name: str
) -> None:
    receipts = evidence.server.received[f"/{name}"]
    assert by_source(receipts) == by_source([_inner(message) for message in evidence.sent])
    assert evidence.server.refused == 0


def test_the_topic_sink_copies_the_topic_byte_for_byte(evidence: Evidence) -> None:
    assert sorted(tail(evidence.setup, "copy")) == sorted(evidence.file("siem"))


@pytest.mark.parametrize("name", ["pulse", "siem"])
def test_no_content_is_below_redacted(evidence: Evidence, name: str) -> None:
    everything = b"\n".join(evidence.file(name)).decode()
    assert [canary for canary in script.CANARIES if canary in everything] == []


def test_the_failures_and_the_dead_letters_hold_no_content(evidence: Evidence) -> None:
    text = b"\n".join(tail(evidence.setup, "failures") + tail(evidence.setup, "dead")).decode()
    assert [canary for canary in script.CANARIES if canary in text] == []


def test_the_logs_and_the_metrics_hold_no_content(evidence: Evidence) -> None:
    text = evidence.metrics.text + (evidence.setup.folder / "run-0.err").read_text()
    assert [canary for canary in script.CANARIES if canary in text] == []


def test_a_full_copy_is_the_event_byte_for_byte(evidence: Evidence) -> None:
    copies = {(e["source"], e["id"]): line for line, e in _with_lines(evidence, "archive")}
    for message in evidence.sent:
        event = _inner(message)
        assert copies[event["source"], event["id"]] in message


def _with_lines(evidence: Evidence, sink: str) -> list[tuple[bytes, JSON]]:
    return list(zip(evidence.file(sink), evidence.events(sink), strict=True))


@pytest.mark.parametrize("name", ["pulse", "siem"])
def test_every_copy_says_which_level_it_honours(evidence: Evidence, name: str) -> None:
    levels = {
        event["extensions"]["dev.hookbus.capture"]["level"] for event in evidence.events(name)
    }
    assert levels == {LEVELS[name]}


def test_a_fail_open_sink_gives_up_each_event_as_a_route_fault(evidence: Evidence) -> None:
    letters = [json.loads(line) for line in tail(evidence.setup, "dead")]
    assert {(letter["sink"], letter["fault"], letter["reason"]) for letter in letters} == {
        ("lab-open", "route_fault", "connection_failed")
    }
    places = sorted((letter["partition"], letter["offset"]) for letter in letters)
    assert places == sorted(_places(evidence.setup, "forms"))


def test_a_fail_closed_sink_skips_nothing(evidence: Evidence) -> None:
    done = evidence.metrics.by("hookbus_sink_records_total", "outcome", sink="lab-closed")
    assert done == {}


def test_each_failed_delivery_is_recorded_outside_its_domain(evidence: Evidence) -> None:
    failures = evidence.failures("archive")
    forms = {(e["source"], e["id"]) for e in map(_inner, evidence.sent) if "elicitation" in e}
    opened = [f for f in failures if f["failure"]["backendId"] == "lab-open"]
    closed = [f for f in failures if f["failure"]["backendId"] == "lab-closed"]
    assert sorted((f["source"], f["parentEventId"]) for f in opened) == sorted(forms)
    assert len(closed) == _lanes(evidence)
    assert {f["failure"]["policy"] for f in opened} == {"fail-open"}
    assert {f["failure"]["policy"] for f in closed} == {"fail-closed"}


def test_a_failure_has_the_session_of_the_event_and_is_valid(evidence: Evidence) -> None:
    validator = Validator()
    for failure in evidence.failures("archive"):
        assert failure["session"] == {"id": script.SESSION_ID}
        params = {"protocolVersion": "draft", "event": failure}
        note = {"jsonrpc": "2.0", "method": "hooks/observe", "params": params}
        validator.validate("observe-notification", note)


def test_a_failure_never_reaches_a_sink_of_its_own_domain(evidence: Evidence) -> None:
    assert evidence.file("lab-audit") == []
    excluded = evidence.metrics.value(
        "hookbus_sink_records_total", sink="lab-audit", outcome="excluded"
    )
    assert excluded == len(evidence.failures("archive")) > 0


def test_the_journal_has_every_failure(evidence: Evidence) -> None:
    journaled = sorted(failure["id"] for failure in evidence.journaled())
    assert journaled == sorted(failure["id"] for failure in evidence.failures("archive"))


@pytest.mark.parametrize("route", [*LEVELS, "forms"])
def test_the_balance_of_every_route_holds(evidence: Evidence, route: str) -> None:
    decided = evidence.metrics.by("hookbus_route_events_total", "decision", route=route)
    received = evidence.metrics.value("hookbus_received_total", ingress="agents")
    in_flight = evidence.metrics.value("hookbus_in_flight", loop="router")
    assert sum(decided.values()) + in_flight == received == len(evidence.sent)
    forms = 2 * len(SOURCES)
    filtered = {"routed": forms, "filtered": received - forms}
    assert decided == (filtered if route == "forms" else {"routed": received})


def test_a_stop_is_clean_although_a_sink_is_stuck(evidence: Evidence) -> None:
    assert evidence.exit_code == 0


def test_the_sessions_are_three_and_interleaved(evidence: Evidence) -> None:
    sources = [_inner(message)["source"] for message in evidence.sent]
    assert len(sources) == EVENTS * len(SOURCES)
    assert sum(one != other for one, other in pairwise(sources)) > len(SOURCES)
