"""The ACLs that docs/security.md lists, on Apache Kafka with its authorizer, over SASL_SSL.

The table is read from the page. Each process does its work with exactly what is listed for it, and
fails with a line that names what is missing without any one of it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hookbus.router import build, build_bus
from hookbus.router.configuration import config_file
from hookbus.router.configuration.config import Config
from hookbus.router.replays import build_replay
from hookbus.router.types import Output, Record
from tests.acls import TABLE, Acl, Row, grant, revoke
from tests.brokers import ROOT, USERS, Broker
from tests.corpus import events
from tests.integration.secured import Secured
from tests.processes import HOOKBUS, PATIENCE, BusKind, Processes, Service, Setup, stream, until

pytestmark = pytest.mark.kafka

ROUTER, SINK = "run --only router", "run --only sink:NAME"
COMMANDS = ("publish", "tail", "deadletters list", "failures list", "deadletters replay")
_DEMO: Final = (ROOT / "router/demo_session.jsonl").read_bytes().splitlines()
_user = count()


class Case:
    """A configuration with topics, a user and a group of its own; the topics have records that
    make every process use every topic that it names."""

    def __init__(self, broker: Broker, folder: Path, row: Row, sink: str = "lab") -> None:
        self.row = row
        self.sink = "copy" if row.when == "a topic sink" else sink
        self.user = USERS[next(_user)]
        self.folder = folder / self.user
        self.folder.mkdir()
        self.setup = self._configured(Secured(broker, self.user), self.folder)
        self.setup.write()
        self._bootstrap = broker.bootstrap

    def _configured(self, bus: BusKind, folder: Path) -> Setup:
        setup = Setup(bus, folder, partitions=1)
        setup.route("siem")
        broken = {"http": {"url": "http://127.0.0.1:9/hooks"}, "deadline": "1ms"}
        setup.sink("lab", "siem", policy="fail-open", **broken)
        setup.sink("copy", "siem", topic=setup.topic("copied"))
        setup.file_sink("audit", "failures")
        setup.journal_only("audit", "copy")
        if self.row.when == "exactly-once":
            setup.tree["bus"]["delivery"] = "exactly-once"
        del setup.tree["bus"]["create_topics"]
        return setup

    @property
    def group(self) -> str:
        return str(self.setup.tree["bus"]["group"])

    def rows(self) -> list[Row]:
        """What the table lists for this process as it is configured."""
        held = {"", self.row.when}
        return [row for row in TABLE if row.process == self.row.process and row.when in held]

    def acls(self, row: Row) -> list[Acl]:
        """What a row stands for here."""
        topic, everything = self.setup.topic, self.row.process == "deadletters replay"
        words = {
            "<ingress topic>": [topic("in")],
            "<route topic>": [topic("siem")],
            "<target topic>": [topic("copied")],
            "<failures topic>": [topic("failures")],
            "<dead-letter topic>": [topic("dead")],
            "<subscribed topic>": [topic("siem"), *([topic("failures")] if everything else [])],
            "<sink>": ["lab", "copy", "audit"] if everything else [self.sink],
            "<group>": [self.group],
        }
        names = [row.name.removesuffix("*")]
        for word, meanings in words.items():
            names = [name.replace(word, meaning) for name in names for meaning in meanings]
        pattern = "prefixed" if row.name.endswith("*") else "literal"
        return [Acl(row.resource, name, row.operation, pattern) for name in dict.fromkeys(names)]

    async def fill(self) -> None:
        """Make the topics and their records, as a user who may do everything."""
        config = self._unlimited()
        bus = build_bus.bus(config)
        try:
            changelogs = build_bus.changelogs(config) | build_replay.changelogs(config)
            await bus.open(build_bus.topics(config), changelogs)
            given = [*stream(3), b"no event", *_DEMO, json.dumps(_failure()).encode()]
            await bus.publish([Output(self.setup.topic("in"), b"k", line) for line in given])
            siem = self.setup.topic("siem")
            await bus.publish([replace(output, topic=siem) for output in _copies()])
            failure = json.dumps(_failure()).encode()
            await bus.publish([Output(self.setup.topic("failures"), b"k", failure)])
            letters = build.office(config)
            await bus.publish([
                letters.broken(await _first(bus, self.setup.topic("in"))),
                letters.undelivered(
                    await _first(bus, siem), "lab", "timeout", "route"
                ),
            ])  # fmt: skip
        finally:
            await bus.close()

    def _unlimited(self) -> Config:
        """The configuration of a user who may do everything."""
        tree = json.loads(self.setup.file.read_text())
        tree["bus"]["kafka"] = {"bootstrap_servers": self._bootstrap}
        tree["bus"] |= {"create_topics": {"partitions": 1}, "delivery": "at-least-once"}
        return config_file.parse(json.dumps(tree))

    def failures(self) -> set[str]:
        """The ids of what is in the failures topic."""

        async def scan() -> set[str]:
            bus = build_bus.bus(self._unlimited())
            topic = self.setup.topic("failures")
            try:
                await bus.open([topic])
                found = [record async for record in bus.scan(topic, follow=False)]
            finally:
                await bus.close()
            return {json.loads(record.value or b"")["id"] for record in found}

        return asyncio.run(scan())

    def start(self, processes: Processes) -> Service:
        part = "router" if self.row.process == ROUTER else f"sink:{self.sink}"
        return processes.run(self.setup, "--only", part)

    def command(self) -> subprocess.CompletedProcess[bytes]:
        """Run the command to its end."""
        topic = self.setup.topic
        rest = {"publish": ["--ingress", "agents"], "tail": ["--topic", topic("siem")]}
        words = [*self.row.process.split(), "-c", str(self.setup.file)]
        return subprocess.run(
            [*HOOKBUS, *words, *rest.get(self.row.process, [])],
            input=stream(1)[0] + b"\n", capture_output=True, timeout=PATIENCE,
        )  # fmt: skip


def _failure() -> dict[str, Any]:
    return events.minimal()["hook.failure"]


@cache
def _copies() -> tuple[Output, ...]:
    """What a router writes of two events."""
    config = config_file.parse(
        "{bus: {sqlite: {path: bus.db}}, ingress: {agents: {topics: [in]}},"
        " routes: {siem: {topic: siem}}, dead_letters: {topic: dead}}"
    )
    pipeline, memory = build.pipeline(config, build.decoder(config)), build.memory(config)
    records = [Record("in", 0, offset, 0, None, line) for offset, line in enumerate(stream(2))]
    return tuple(output for one in records for output in pipeline.step(one, memory).outputs)


async def _first(bus: Any, topic: str) -> Record:
    async for record in bus.scan(topic, follow=False):
        return record  # type: ignore[no-any-return]
    raise AssertionError("no record")


def prepare(cases: Sequence[Case]) -> None:
    """Fill the topics of all."""

    async def fill() -> None:
        await asyncio.gather(*(case.fill() for case in cases))

    asyncio.run(fill())


def full(case: Case) -> list[tuple[str, Acl]]:
    """Everything that is listed."""
    return [(case.user, acl) for row in case.rows() for acl in case.acls(row)]


def lacking(case: Case, *, visible: bool) -> list[tuple[str, Acl]]:
    """All but the case's own row; `visible` leaves Describe of a topic."""
    missing = case.acls(case.row)
    held = [(user, acl) for user, acl in full(case) if acl not in missing]
    if visible:
        held += [(case.user, acl._replace(operation="Describe")) for acl in missing]
    return held


def variants(process: str) -> Iterator[tuple[Row, bool]]:
    """Each row of a process to be taken away, and whether its topic may still be seen: then the
    start has nothing to complain of, and the operation itself is refused."""
    for row in TABLE:
        if row.process == process:
            others = [one.name for one in TABLE if one.process == process and one != row]
            yield row, row.resource == "topic" and row.name not in others


@pytest.mark.parametrize("when", ["", "exactly-once"])
def test_a_router_works_with_what_is_listed(
    kafka: Broker, tmp_path: Path, processes: Processes, when: str
) -> None:
    """It reads, routes, remembers, dead-letters and reports, over SASL_SSL, and stops well."""
    case = Case(kafka, tmp_path, Row(ROUTER, "", "", "", when))
    prepare([case])
    grant(kafka.bootstrap, full(case))
    router = case.start(processes).ready()
    expected = len(_DEMO) + 5

    def done() -> bool:
        found = router.metrics().by("hookbus_route_events_total", "decision", route="siem")
        return sum(found.values()) == expected

    until(done, lambda: router.stderr)
    metrics = router.metrics()
    assert metrics.value("hookbus_refused_total", code="invalid_json") == 1
    assert metrics.value("hookbus_events_total", type="hook.failure") == 1
    assert metrics.value("hookbus_elicitation_results_total", result="matched") > 0
    router.stop()


@pytest.mark.parametrize("when", ["", "exactly-once", "a topic sink"])
def test_a_sink_works_with_what_is_listed(
    kafka: Broker, tmp_path: Path, processes: Processes, when: str
) -> None:
    """One delivers; the other gives up, dead-letters and reports its failures."""
    case = Case(kafka, tmp_path, Row(SINK, "", "", "", when))
    prepare([case])
    grant(kafka.bootstrap, full(case))
    sink = case.start(processes).ready()
    outcome = "delivered" if case.sink == "copy" else "dead_lettered"

    def done() -> bool:
        found = sink.metrics().by("hookbus_sink_records_total", "outcome", sink=case.sink)
        return found == {outcome: 2}

    until(done, lambda: sink.stderr)
    reports = 1 if case.sink == "copy" else 3  # one is there from the start
    until(lambda: len(case.failures()) == reports, lambda: sink.stderr)
    sink.stop()


@pytest.mark.parametrize("process", COMMANDS)
def test_a_command_works_with_what_is_listed(kafka: Broker, tmp_path: Path, process: str) -> None:
    """And says what it should."""
    case = Case(kafka, tmp_path, Row(process, "", "", "", ""))
    prepare([case])
    grant(kafka.bootstrap, full(case))
    done = case.command()
    assert done.returncode == 0, done.stderr
    shown = {
        "publish": (b"1", done.stderr),
        "tail": (b"evt-000001", done.stdout),
        "deadletters list": (b'"stage":"sink"', done.stdout),
        "failures list": (b'"recorded":["topic"]', done.stdout),
        "deadletters replay": (b'"replayed":2', done.stdout),
    }
    wanted, where = shown[process]
    assert wanted in where, done


@pytest.mark.parametrize("process", [ROUTER, SINK])
def test_a_process_fails_without_any_one_acl(kafka: Broker, tmp_path: Path, process: str) -> None:
    """It ends, with exit code 3 or 4, and says what it is not authorized for."""
    cases = [(Case(kafka, tmp_path, row), visible) for row, visible in variants(process)]
    prepare([case for case, _ in cases])
    grant(kafka.bootstrap, [a for case, visible in cases for a in lacking(case, visible=visible)])
    with ExitStack() as stack:
        processes = stack.enter_context(Processes())
        started = [(case, case.start(processes)) for case, _ in cases]
        for case, service in started:
            assert service.wait() in (3, 4), (case.row, service.stderr)
            errors = [line for line in service.logs if line["level"] == "error"]
            whys = [str(line.get("why")) for line in errors]
            assert any("not authorized" in why and _named(case, why) for why in whys), (
                case.row, service.stderr,
            )  # fmt: skip
            assert all(line["logger"] == "hookbus.service" for line in errors), service.stderr


@pytest.mark.parametrize("process", COMMANDS)
def test_a_command_fails_without_any_one_acl(kafka: Broker, tmp_path: Path, process: str) -> None:
    """The same for what an operator calls."""
    cases = [(Case(kafka, tmp_path, row), visible) for row, visible in variants(process)]
    prepare([case for case, _ in cases])
    grant(kafka.bootstrap, [a for case, visible in cases for a in lacking(case, visible=visible)])
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda one: one[0].command(), cases))
    for (case, _), done in zip(cases, ended, strict=True):
        said = done.stderr.decode()
        assert done.returncode in (3, 4), (case.row, done)
        assert "not authorized" in said, (case.row, said)
        assert _named(case, said) or "to write to any topic" in said, (case.row, said)


def _named(case: Case, text: str) -> bool:
    return any(acl.name in text for acl in case.acls(case.row))


def test_a_topic_that_may_not_be_seen_is_refused_with_its_name(
    kafka: Broker, tmp_path: Path, processes: Processes
) -> None:
    """Kafka doesn't say whether it exists, and hookbus doesn't ask for it to be made."""
    case = Case(kafka, tmp_path, next(row for row in TABLE if row.name == "<route topic>"))
    prepare([case])
    grant(kafka.bootstrap, lacking(case, visible=False))
    router = case.start(processes)
    assert router.wait() == 3
    assert f"not authorized for the topics {case.setup.topic('siem')}, or" in router.stderr


def test_missing_topics_are_made_by_who_may(
    kafka: Broker, tmp_path: Path, processes: Processes
) -> None:
    """`Create` on each is enough; without one the start is refused with its name."""
    case, other = (Case(kafka, tmp_path, Row(ROUTER, "", "", "", "")) for _ in range(2))
    for one in (case, other):
        one.setup.tree["bus"]["create_topics"] = {"partitions": 1}
        one.setup.write()
    making = {
        one: [(one.user, acl._replace(operation="Create")) for _, acl in full(one)
              if acl.resource == "topic"]
        for one in (case, other)
    }  # fmt: skip
    dead = other.setup.topic("dead")
    making[other] = [(user, acl) for user, acl in making[other] if acl.name != dead]
    grant(kafka.bootstrap, [a for one in (case, other) for a in full(one) + making[one]])
    router, refused = case.start(processes), other.start(processes)
    router.ready().stop()
    assert refused.wait() == 3
    assert f"the topic {dead} can't be created: not authorized" in refused.stderr


@pytest.mark.parametrize(
    ("resource", "instead"),
    [("group", None), ("group", "Describe"), ("transactional-id", None)],
)
def test_a_reload_that_adds_a_sink_which_may_not_join_is_refused(
    kafka: Broker, tmp_path: Path, processes: Processes, resource: str, instead: str | None
) -> None:
    """Before anything changes: the service goes on, and takes the sink once it is allowed."""
    when = "exactly-once" if resource == "transactional-id" else ""
    case = Case(kafka, tmp_path, Row(ROUTER, "", "", "", when))
    prepare([case])
    group, tree = case.group, case.setup.tree
    missing = {
        "group": Acl("group", f"{group}.sink.copy", "Read"),
        "transactional-id": Acl("transactional-id", f"{group}.sink.copy.", "Write", "prefixed"),
    }
    held = [Acl("topic", "*", operation) for operation in ("Read", "Write")]
    for loop in ("router", "sink.lab", "sink.audit"):
        held.append(Acl("group", f"{group}.{loop}", "Read"))
        held.append(Acl("transactional-id", f"{group}.{loop}.", "Write", "prefixed"))
    held += [acl for name, acl in missing.items() if name != resource]
    if instead is not None:
        held.append(missing[resource]._replace(operation=instead))
    grant(kafka.bootstrap, [(case.user, acl) for acl in held])
    copy = tree["sinks"].pop("copy")
    tree["failures"]["journal_only"].remove("copy")
    case.setup.write()
    service = processes.run(case.setup).ready()
    tree["sinks"]["copy"] = copy
    case.setup.journal_only("copy")
    case.setup.write()
    refused = service.reload()
    assert refused["message"] == "configuration refused, the running one stays"
    (why,) = refused["why"]
    assert f"not authorized for the {resource.replace('-', ' ')}" in why
    assert f"{group}.sink.copy" in why
    grant(kafka.bootstrap, [(case.user, missing[resource])])
    assert service.reload()["message"] == "configuration applied"

    def delivered() -> bool:
        found = service.metrics().by("hookbus_sink_records_total", "outcome", sink="copy")
        return found.get("delivered", 0) > 0

    until(delivered, lambda: service.stderr)
    service.stop()


def test_an_acl_that_is_taken_away_ends_the_process(
    kafka: Broker, tmp_path: Path, processes: Processes
) -> None:
    """Not silently, and not by waiting for ever: a platform starts it again, or tells somebody."""
    case = Case(kafka, tmp_path, Row(ROUTER, "", "", "", ""))
    prepare([case])
    grant(kafka.bootstrap, full(case))
    router = case.start(processes).ready()
    topic = case.setup.topic("in")
    revoke(kafka.bootstrap, [(case.user, Acl("topic", topic, "Read"))])
    assert router.wait() == 4
    assert f"not authorized for the topic {topic}" in router.stderr
