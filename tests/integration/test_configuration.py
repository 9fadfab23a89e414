"""What the service refuses to start with, and how it says so."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.processes import BusKind, Processes, Setup, command, publish


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
    publish(setup, [b"{}"])
    missing = setup.topic("missing")
    for _ in range(2):
        done = command("tail", "-c", str(setup.file), "--topic", missing, code=3)
        assert done.stderr.decode().startswith(f"there is no topic {missing}: ")
    near = setup.topic("inn")
    done = command("tail", "-c", str(setup.file), "--topic", near, code=3)
    assert f"did you mean {setup.topic('in')}?" in done.stderr.decode()


READING = (
    ("tail", "--topic", "{dead}"),
    ("deadletters", "list"),
    ("deadletters", "replay", "--dry-run"),
    ("failures", "list"),
)


@pytest.mark.parametrize("arguments", READING, ids=lambda words: "-".join(words[:2]))
@pytest.mark.parametrize(
    ("creates", "advice"),
    [(True, "`hookbus run` makes it"), (False, "create it, or set bus.create_topics")],
)
def test_what_only_reads_says_what_to_do_about_a_topic_that_is_not_there(
    setup: Setup, arguments: tuple[str, ...], creates: bool, advice: str
) -> None:
    setup.write()
    publish(setup, [b"{}"])  # which makes the ingress topic, and none that is read here
    if not creates:
        del setup.tree["bus"]["create_topics"]
        setup.write()
    words = [word.format(dead=setup.topic("dead")) for word in arguments]
    topic = setup.topic("failures" if "failures" in words else "dead")
    said = command(*words, "-c", str(setup.file), code=3).stderr.decode().splitlines()
    assert said[-1] == f"there is no topic {topic}: {advice}"


@pytest.mark.parametrize("arguments", READING, ids=lambda words: "-".join(words[:2]))
def test_what_only_reads_makes_no_embedded_bus(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    setup = Setup(BusKind("sqlite"), tmp_path)
    setup.write()
    words = [word.format(dead=setup.topic("dead")) for word in arguments]
    said = command(*words, "-c", str(setup.file), code=3).stderr.decode().splitlines()
    assert said[-1].startswith("there is no bus ")
    assert list(setup.folder.iterdir()) == [setup.file]


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


@pytest.mark.parametrize("listen", ["9464", "localhost", "127.0.0.1:99999", "127.0.0.1:9464x"])
def test_an_address_to_listen_on_that_is_none_exits_2(
    bus: BusKind, setup: Setup, listen: str
) -> None:
    """As an option, and in the configuration, where `plan` finds it with everything else."""
    setup.route("siem", {"type": ["user.elicitatoin.*"]})
    setup.tree["metrics"] = {"listen": listen}
    setup.write()
    for name in ("plan", "run"):
        said = command(name, "-c", str(setup.file), code=2).stderr.decode()
        assert "metrics.listen: expected host:port" in said
        assert "no event type is user.elicitatoin.*" in said
    setup.route("siem")
    del setup.tree["metrics"]
    setup.write()
    said = command("run", "-c", str(setup.file), "--listen", listen, code=2).stderr.decode()
    assert "--listen: expected host:port" in said
    assert "Traceback" not in said


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


@pytest.mark.parametrize(
    ("section", "arguments"),
    [
        ("failures", ("failures", "list")),
        ("dead_letters", ("deadletters", "list")),
        ("dead_letters", ("deadletters", "replay")),
    ],
)
def test_a_configuration_without_what_a_command_looks_at_exits_2(
    tmp_path: Path, section: str, arguments: tuple[str, ...]
) -> None:
    setup = Setup(BusKind("sqlite"), tmp_path)
    del setup.tree[section]
    setup.write()
    said = command(*arguments, "-c", str(setup.file), code=2).stderr.decode()
    assert said == f"{section}: missing\n"
