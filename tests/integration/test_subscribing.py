"""The examples in deploy/subscribe, each as a process of its own, behind one `hookbus run`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acls import TABLE, Acl, grant
from tests.brokers import CACHE, ROOT, USERS, Broker, free_port
from tests.processes import (
    PATIENCE,
    BusKind,
    Processes,
    Service,
    Setup,
    lines,
    publish,
    stream,
    tail,
    until,
)

pytestmark = pytest.mark.kafka

SUBSCRIBE: Final = ROOT / "deploy/subscribe"
DEMO: Final = (ROOT / "router/demo_session.jsonl").read_bytes().splitlines()
TOKEN: Final = "let-me-in"  # noqa: S105
_number = count()


class Example:
    """A running example; what it prints goes to a file."""

    def __init__(self, folder: Path, *command: str, **environment: str) -> None:
        self.out, self.err = (folder / f"example-{next(_number)}.{name}" for name in ("out", "err"))
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env={**os.environ, **environment},
            )  # fmt: skip

    def printed(self, wanted: int) -> list[bytes]:
        """The lines that it has printed, once there are as many."""
        until(lambda: len(lines(self.out)) >= wanted, lambda: f"{wanted} lines: {self.told()}")
        return lines(self.out)

    def told(self) -> str:
        return f"{len(lines(self.out))} lines; {self.err.read_text()}"

    def stop(self, code: int = 0) -> None:
        self._popen.send_signal(signal.SIGTERM)
        assert self._popen.wait(PATIENCE) == code, self.told()

    def kill(self) -> None:
        self._popen.kill()
        self._popen.wait()


@contextmanager
def example(folder: Path, *command: str, **environment: str) -> Iterator[Example]:
    """One that is not left behind."""
    running = Example(folder, *command, **environment)
    try:
        yield running
    finally:
        running.kill()


class World:
    """A service with a file and a backend, and what was published to it."""

    def __init__(self, setup: Setup, service: Service, backend: Example) -> None:
        self.setup = setup
        self.service = service
        self.backend = backend
        self.url = str(setup.tree["sinks"]["backend"]["http"]["url"])
        self.published = 0

    def publish(self, given: list[bytes]) -> None:
        publish(self.setup, given)
        self.published += len(given)

    def stored(self) -> set[tuple[str, str]]:
        """Source and id of what the backend has."""
        with closing(sqlite3.connect(self.setup.folder / "events.db")) as database:
            return set(database.execute("SELECT source, id FROM events"))


@pytest.fixture(scope="module")
def world(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    setup = Setup(BusKind("kafka", broker.bootstrap), tmp_path_factory.mktemp("subscribing"))
    port = free_port()
    setup.route("siem", capture="metadata")
    setup.file_sink("archive", "siem")
    setup.tree["sinks"]["archive"]["file"] |= {"rotate": "4KiB", "keep": 100}
    setup.sink(
        "backend", "siem",
        http={"url": f"http://127.0.0.1:{port}/hooks", "bearer": {"env": "BACKEND_TOKEN"}},
        retry={"initial": "50ms", "maximum": "500ms"}, deadline="60s",
    )  # fmt: skip
    setup.journal_only("archive", "backend")
    setup.write()
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(SUBSCRIBE)]
    command += ["--port", str(port), "--log-level", "warning", "http_backend:app"]
    environment = {"BACKEND_TOKEN": TOKEN, "BACKEND_DB": str(setup.folder / "events.db")}
    with (
        Processes({"BACKEND_TOKEN": TOKEN}) as processes,
        example(setup.folder, *command, **environment) as backend,
    ):
        service = processes.run(setup).ready()
        until(lambda: _listens(port), backend.told)  # its faults are counted
        running = World(setup, service, backend)
        running.publish(DEMO)
        yield running
        service.stop()


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE):
            return True
    except ConnectionRefusedError:
        return False


def test_a_kafka_consumer_chooses_by_headers_and_goes_on_where_it_stopped(
    world: World, broker: Broker
) -> None:
    """What it has committed doesn't come again."""
    command = [sys.executable, str(SUBSCRIBE / "kafka_consumer.py")]
    command += ["--bootstrap", broker.bootstrap, "--topic", world.setup.topic("siem")]
    command += ["--group", world.setup.topic("my-app"), "--type", "user.elicitation.*"]
    command += ["--capture", "metadata"]
    with example(world.setup.folder, *command) as consumer:
        seen = [json.loads(line) for line in consumer.printed(2)]
        consumer.stop()
    assert [event["type"] for event in seen] == [
        "user.elicitation.request", "user.elicitation.result",
    ]  # fmt: skip
    assert {event["capture"] for event in seen} == {"metadata"}
    assert all("elicitation" in event["members"] for event in seen)
    again = [line.replace(b"evt-00", b"evt-99") for line in DEMO if b"user.elicitation" in line]
    world.publish([*again, *stream(5)])
    with example(world.setup.folder, *command) as consumer:
        ids = [json.loads(line)["id"] for line in consumer.printed(2)]
        consumer.stop()
    assert len(ids) == 2
    assert all(identity.startswith("evt-99") for identity in ids)


def test_a_backend_on_the_sdk_stores_each_event_once_and_says_when_it_can_not(
    world: World,
) -> None:
    """While its database is locked hookbus tries again, and nothing is lost."""
    until(lambda: len(world.stored()) == world.published, "everything is stored")
    with closing(sqlite3.connect(world.setup.folder / "events.db")) as database:
        database.execute("BEGIN EXCLUSIVE")
        world.publish(stream(3, start=100))

        def refused() -> bool:
            faults = world.service.metrics().by("hookbus_sink_faults_total", "reason")
            return faults.keys() == {"server_error"}

        until(refused, lambda: world.service.metrics().text)
        database.rollback()
    until(lambda: len(world.stored()) == world.published, "everything is stored")


def post(url: str, body: bytes, token: str) -> int:
    """The status of the answer."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - ours
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_backend_on_the_sdk_refuses_strangers_and_what_is_no_event(world: World) -> None:
    """The SDK alone would answer 204."""
    note: dict[str, Any] = {"jsonrpc": "2.0", "method": "hooks/observe", "params": {"event": {}}}
    assert post(world.url, json.dumps(note).encode(), "guessed") == 401
    assert post(world.url, json.dumps(note).encode(), TOKEN) == 400
    assert post(world.url, DEMO[0], TOKEN) == 204


def archived(world: World) -> list[bytes]:
    """The lines of all files of the sink, the oldest first."""
    path = world.setup.folder / "archive.jsonl"
    numbers = sorted(
        (int(name.suffix[1:]) for name in path.parent.glob(f"{path.name}.*[0-9]")), reverse=True
    )
    files = [path.with_name(f"{path.name}.{number}") for number in numbers]
    return [line for file in [*files, path] for line in lines(file)]


def test_a_file_reader_follows_through_rotation_and_goes_on_where_it_stopped(world: World) -> None:
    """Together two runs of it print every line once, in order."""
    folder = world.setup.folder
    command = [sys.executable, str(SUBSCRIBE / "file_reader.py"), str(folder / "archive.jsonl")]
    command += ["--state", str(folder / "place")]
    before = world.published
    with example(folder, *command) as first:
        first.printed(before)
        world.publish(stream(30, start=200))
        first.printed(world.published)
        first.stop()
    world.publish(stream(30, start=300))
    until(lambda: len(archived(world)) == world.published, "everything is in the files")
    with example(folder, *command) as second:
        second.printed(30)
        second.stop()
    assert lines(first.out) + lines(second.out) == archived(world)
    assert (folder / "archive.jsonl.2").exists()


def test_a_file_reader_waits_for_whole_lines_and_bears_that_lines_are_taken_back(
    tmp_path: Path,
) -> None:
    """What was written again in their place is read whole, from the start of the file."""
    path = tmp_path / "archive.jsonl"
    path.write_bytes(b'{"id":"a"}\n{"id":"b"}\n{"id":"')
    command = [sys.executable, str(SUBSCRIBE / "file_reader.py"), str(path)]
    with example(tmp_path, *command, "--state", str(tmp_path / "place")) as reader:
        assert reader.printed(2) == [b'{"id":"a"}', b'{"id":"b"}']
        with path.open("ab") as file:
            file.write(b'c"}\n')
        assert reader.printed(3)[2:] == [b'{"id":"c"}']
        with path.open("r+b") as file:
            file.seek(len(b'{"id":"a"}\n'))
            file.write(b'{"number":1}\n{"number":2}\n')
            file.truncate()
        assert reader.printed(6)[3:] == [b'{"id":"a"}', b'{"number":1}', b'{"number":2}']
        reader.stop()


def test_a_subscriber_in_java_needs_the_listed_acls_alone(world: World, kafka: Broker) -> None:
    """It comes over TLS, with a login, and goes on where it stopped."""
    if shutil.which("javac") is None:
        pytest.skip("no JDK here")
    topic, group, user = world.setup.topic("siem"), world.setup.topic("java"), USERS[-2]
    names = {"<route topic>": topic, "<its own group>": group}
    grant(
        kafka.bootstrap,
        [
            (user, Acl(row.resource, names[row.name], row.operation))
            for row in TABLE
            if row.process == "a subscriber"
        ],
    )
    settings = world.setup.folder / "client.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings.write_text(
        f"bootstrap.servers={kafka.sasl_tls}\ngroup.id={group}\nsecurity.protocol=SASL_SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={kafka.ca_file}\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} required username="{user}" password="secret";\n'
    )
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{CACHE}/*"]
    command += [str(SUBSCRIBE / "Subscriber.java"), str(settings), topic, "user.elicitation."]
    expected = [line for line in tail(world.setup, "siem") if b'"type":"user.elicitation.' in line]
    with example(world.setup.folder, *command) as subscriber:
        printed = subscriber.printed(len(expected))
        subscriber.stop(143)  # 128 + SIGTERM, as of every JVM
    assert {line.split()[3] for line in printed} == {b"metadata"}
    ids = {line.split()[1].decode() for line in printed}
    assert ids == {json.loads(line)["id"] for line in expected}
