"""What the service refuses to start with, and how it says so."""

from __future__ import annotations

import socket

import pytest

from tests.processes import BusKind, Processes, Setup, command


def test_a_bad_configuration_exits_2_and_names_every_problem(setup: Setup) -> None:
    setup.route("siem", {"type": ["user.elicitatoin.*"]}, capture="metdata")
    setup.file_sink("archive", "siem")
    setup.tree["sinks"]["archive"]["polcy"] = setup.tree["sinks"]["archive"].pop("policy")
    setup.tree["shutdown_grace"] = 20
    setup.write()
    said = command("run", "-c", str(setup.file), code=2).stderr.decode()
    for problem in (
        "routes.siem.capture",
        "sinks.archive.polcy: unknown key; did you mean policy?",
        "sinks.archive.policy: missing",
        "shutdown_grace: expected a duration",
    ):
        assert problem in said


def test_problems_between_fields_are_named_together_too(setup: Setup) -> None:
    setup.route("siem", {"type": ["user.elicitatoin.*"]})
    setup.tree["routes"]["siem"]["topic"] = setup.topic("in")
    setup.file_sink("archive", "nowhere")
    setup.write()
    said = command("run", "-c", str(setup.file), code=2).stderr.decode()
    for problem in (
        "no event type is user.elicitatoin.*; did you mean user.elicitation.*?",
        "events would go in circles",
        f"nothing writes {setup.topic('nowhere')}",
        "its failures would reach no audit sink",
    ):
        assert problem in said


def test_a_sink_without_an_audit_outside_its_domain_is_refused(setup: Setup) -> None:
    setup.route("siem")
    setup.file_sink("one", "siem", "failures", failure_domain="disk")
    setup.file_sink("two", "siem", "failures", failure_domain="disk")
    setup.write()
    said = command("run", "-c", str(setup.file), code=2).stderr.decode()
    assert "sinks.one: its failures would reach no audit sink" in said
    assert "sinks.two: its failures would reach no audit sink" in said


def test_a_plan_opens_nothing(setup: Setup) -> None:
    setup.route("siem")
    setup.file_sink("archive", "siem", "failures")
    setup.journal_only("archive")
    setup.write()
    command("plan", "-c", str(setup.file))
    assert list(setup.folder.iterdir()) == [setup.file]


def test_an_unknown_part_exits_2(setup: Setup) -> None:
    setup.write()
    said = command("run", "-c", str(setup.file), "--only", "sink:archive", code=2).stderr
    assert b"--only sink:archive: there is no such part" in said


def test_missing_topics_are_refused_with_their_names(setup: Setup, processes: Processes) -> None:
    setup.route("siem")
    setup.file_sink("archive", "siem", "failures")
    setup.journal_only("archive")
    del setup.tree["bus"]["create_topics"]
    setup.write()
    service = processes.run(setup)
    assert service.wait() == 3
    for topic in ("in", "siem", "failures", "dead"):
        assert setup.topic(topic) in service.stderr


def test_a_topic_that_publish_needs_is_refused_with_its_name(setup: Setup) -> None:
    del setup.tree["bus"]["create_topics"]
    setup.write()
    done = command("publish", "-c", str(setup.file), "--ingress", "agents", stdin=b"{}\n", code=3)
    assert setup.topic("in").encode() in done.stderr


def test_tail_refuses_a_topic_that_is_missing_and_makes_none(setup: Setup) -> None:
    setup.write()
    arguments = ("tail", "-c", str(setup.file), "--topic", setup.topic("misspelt"))
    for _ in range(2):
        assert setup.topic("misspelt").encode() in command(*arguments, code=3).stderr


def test_a_port_in_use_exits_3(setup: Setup, processes: Processes) -> None:
    setup.route("siem")
    setup.write()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        service = processes.run(setup, listen=address)
        assert service.wait() == 3
    assert f"metrics.listen {address}" in service.stderr


def test_a_certificate_that_is_not_there_exits_3(setup: Setup, processes: Processes) -> None:
    setup.route("siem")
    http = {"url": "https://siem.example/hooks", "ca_file": str(setup.folder / "none.pem")}
    setup.sink("siem", "siem", http=http)
    setup.journal_only("siem")
    setup.write()
    service = processes.run(setup)
    assert service.wait() == 3
    assert "sinks.siem.http: a certificate can't be read" in service.stderr


@pytest.mark.parametrize("text", ["bus: [", "bus: {}\nbus: {}\n", "- a\n", ""])
def test_a_file_that_is_no_configuration_exits_2_with_one_line(
    bus: BusKind, setup: Setup, text: str
) -> None:
    setup.file.write_text(text)
    said = command("run", "-c", str(setup.file), code=2).stderr.decode()
    assert len(said.splitlines()) == 1
    assert "Traceback" not in said
