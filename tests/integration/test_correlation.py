"""Pending elicitations outlive the process that took them, on both buses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.processes import Processes, Service, Setup, lines, publish, until

AGENTS = 12

FORM = {
    "message": "Which zone?",
    "requestedSchema": {
        "type": "object",
        "properties": {"zone": {"type": "string", "enum": ["eu-1", "us-1"]}},
    },
}


def _event(agent: int, kind: str, identity: str, body: Any, **elicitation: Any) -> bytes:
    made: dict[str, Any] = {
        "id": identity,
        "source": f"urn:agent:{agent}",
        "type": f"user.elicitation.{kind}",
        "time": "2026-11-29T10:00:00Z",
        "harness": {"name": "h", "version": "1"},
        "elicitation": {
            "server": "deployer",
            "mode": "form",
            **elicitation,
            kind: {
                "id": "p",
                "kind": "text",
                "mediaType": "text/plain",
                "selection": "body",
                "text": json.dumps(body),
            },
        },
    }
    if kind == "result":
        made["parentEventId"] = "q"
    return json.dumps(made).encode()


def _questions() -> list[bytes]:
    return [_event(agent, "request", "q", FORM) for agent in range(AGENTS)]


def _answers(identity: str, zone: str) -> list[bytes]:
    body = {"action": "accept", "content": {"zone": zone}}
    return [_event(a, "result", identity, body, action="accept") for a in range(AGENTS)]


def _forms(path: Path) -> list[Any]:
    """What the copies say, those of results alone."""
    events = [json.loads(line) for line in lines(path)]
    results = [event for event in events if event["type"].endswith("result")]
    return [event["extensions"]["dev.hookbus.form"] for event in results]


def _setup(setup: Setup) -> Path:
    setup.route("siem")
    path = setup.file_sink("archive", "siem")
    setup.journal_only("archive")
    setup.write()
    return path


def _settled(router: Service) -> bool:
    """Whether a router is done with as many events as there are agents, so that none comes again
    once it is killed."""
    found = router.metrics().by("hookbus_route_events_total", "decision", route="siem")
    return sum(found.values()) >= AGENTS


def _matched(forms: list[Any]) -> bool:
    return all(form["result"] == "matched" and form["values"] == {"zone": "eu-1"} for form in forms)


def test_an_answer_finds_its_question_after_the_router_was_killed(
    setup: Setup, processes: Processes
) -> None:
    """The question was taken by a process that is dead; the answer is verified all the same, and a
    second one conflicts with what yet another process knew."""
    path = _setup(setup)
    sink = processes.run(setup, "--only", "sink:archive").ready()
    first = processes.run(setup, "--only", "router").ready()
    publish(setup, _questions())
    until(lambda: _settled(first), lambda: first.stderr)
    until(lambda: len(lines(path)) == AGENTS, "questions")
    first.kill()
    second = processes.run(setup, "--only", "router").ready()
    publish(setup, _answers("r1", "eu-1"))
    until(lambda: len(_forms(path)) == AGENTS, lambda: second.stderr)
    assert _matched(_forms(path))
    until(lambda: _settled(second), lambda: second.stderr)
    second.kill()
    processes.run(setup, "--only", "router").ready()
    publish(setup, _answers("r2", "us-1"))
    until(lambda: len(_forms(path)) == 2 * AGENTS, lambda: sink.stderr)
    assert {form["result"] for form in _forms(path)[AGENTS:]} == {"conflicting"}


def test_questions_move_with_their_partitions_to_another_router(
    setup: Setup, processes: Processes
) -> None:
    """A router that joins takes over partitions, and what is pending in them."""
    path = _setup(setup)
    processes.run(setup, "--only", "sink:archive").ready()
    first = processes.run(setup, "--only", "router").ready()
    publish(setup, _questions())
    until(lambda: len(lines(path)) == AGENTS, "questions")
    second = processes.run(setup, "--only", "router").ready()
    until(lambda: len(second.metrics().labels("hookbus_lag", "partition")) == 2, "two partitions")
    until(lambda: len(first.metrics().labels("hookbus_lag", "partition")) == 2, "two are left")
    publish(setup, _answers("r1", "eu-1"))
    until(lambda: len(_forms(path)) == AGENTS, lambda: second.stderr)
    assert _matched(_forms(path))
