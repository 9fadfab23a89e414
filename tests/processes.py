"""The service as an operator runs it: real processes on a real bus, and what can be seen of them.

A `Setup` is one configuration with topics, files and consumer groups of its own; `Processes` starts
commands on it and leaves none of them behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hookbus.router import build_bus
from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.configuration import config_file
from hookbus.router.types import Bus, Record

JSON = dict[str, Any]
Sample = tuple[str, frozenset[tuple[str, str]]]

HOOKBUS: Final = (sys.executable, "-m", "hookbus.router")
PATIENCE: Final = 60.0
"""Seconds after which something that should happen counts as not happening."""


def until(
    condition: Callable[[], Any], what: str | Callable[[], str], *, patience: float = PATIENCE
) -> Any:
    """The condition's value once it is true; fails with `what` if that takes too long."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {patience:.0f} s: {what() if callable(what) else what}")
        time.sleep(0.02)
    return value


class BusKind:
    """A kind of bus that setups can be made on."""

    def __init__(self, kind: str, bootstrap: str | None = None) -> None:
        self.kind = kind
        self._bootstrap = bootstrap

    def section(self, folder: Path) -> JSON:
        """The `bus` section of a configuration, without topics to create."""
        if self._bootstrap is None:
            return {"sqlite": {"path": str(folder / "bus.db")}}
        return {
            "kafka": {
                "bootstrap_servers": self._bootstrap,
                "session_timeout": "6s",
                "request_timeout": "10s",
            }
        }


BUSES: Final = ["sqlite", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(scope="module", params=BUSES)
def bus(request: pytest.FixtureRequest) -> BusKind:
    """Both buses, one after the other."""
    if request.param == "sqlite":
        return BusKind("sqlite")
    return BusKind("kafka", request.getfixturevalue("kafka_bootstrap"))


@pytest.fixture
def setup(bus: BusKind, tmp_path: Path) -> Setup:
    """A fresh setup on the bus."""
    return Setup(bus, tmp_path)


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Starts processes; none is left at the end of the test."""
    with Processes() as started:
        yield started


class Setup:
    """A configuration to be changed (`tree`) before it is written; its topics are nobody else's."""

    def __init__(self, bus: BusKind, folder: Path, *, partitions: int = 4) -> None:
        self.folder = folder
        self._unique = uuid4().hex[:10]
        self.tree: JSON = {
            "bus": {
                **bus.section(folder),
                "create_topics": {"partitions": partitions},
                "group": f"group-{self._unique}",
            },
            "ingress": {"agents": {"topics": [self.topic("in")]}},
            "routes": {},
            "sinks": {},
            "failures": {
                "topic": self.topic("failures"),
                "journal": str(self.journal),
                "journal_only": [],
            },
            "dead_letters": {"topic": self.topic("dead")},
            "shutdown_grace": "20s",
            "event_loop": os.environ.get("HOOKBUS_TEST_EVENT_LOOP", "asyncio"),
        }

    @property
    def journal(self) -> Path:
        return self.folder / "journal.db"

    @property
    def file(self) -> Path:
        """The configuration as it is written."""
        return self.folder / "hookbus.yaml"

    def topic(self, name: str) -> str:
        return f"{name}-{self._unique}"

    def route(self, name: str, match: JSON | None = None, **settings: Any) -> None:
        """A route to the topic of its own name."""
        self.tree["routes"][name] = {"match": match or {}, "topic": self.topic(name), **settings}

    def sink(self, name: str, *topics: str, policy: str = "fail-closed", **settings: Any) -> None:
        self.tree["sinks"][name] = {
            "topics": [self.topic(topic) for topic in topics],
            "policy": policy,
            **settings,
        }

    def file_sink(self, name: str, *topics: str, **settings: Any) -> Path:
        """A sink that writes to the file of its own name."""
        path = self.folder / f"{name}.jsonl"
        self.sink(name, *topics, file={"path": str(path)}, **settings)
        return path

    def journal_only(self, *sinks: str) -> None:
        """These sinks' failures need no audit sink."""
        self.tree["failures"]["journal_only"] += sinks

    def write(self) -> Path:
        self.file.write_text(json.dumps(self.tree, indent=1))  # JSON is YAML
        return self.file


class Service:
    """One process of `hookbus run`."""

    def __init__(
        self, name: str, popen: subprocess.Popen[bytes], stdout: Path, stderr: Path
    ) -> None:
        self.name = name
        self._popen = popen
        self.stdout = stdout
        self._stderr = stderr

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def stderr(self) -> str:
        return self._stderr.read_text(errors="replace")

    @property
    def logs(self) -> list[JSON]:
        """What it has logged so far."""
        complete = self.stderr.rpartition("\n")[0].splitlines()
        assert all(line.startswith("{") for line in complete), self.stderr
        return [json.loads(line) for line in complete]

    def logged(self, message: str) -> JSON | None:
        """The first log line with this message."""
        return next((line for line in self.logs if line["message"] == message), None)

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def url(self, path: str) -> str:
        """A URL of its operator server; waits until it listens."""
        served = until(
            lambda: self.logged("metrics served") or not self.running,
            lambda: f"metrics served; stderr: {self.stderr}",
        )
        assert isinstance(served, dict), f"the process ended: {self.stderr}"
        return f"http://{served['address']}{path}"

    def get(self, path: str) -> tuple[int, str]:
        """The status and the text of an answer of the operator server; 0 without an answer."""
        try:
            with urllib.request.urlopen(self.url(path), timeout=PATIENCE) as answer:  # noqa: S310 - ours
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def ready(self) -> Service:
        """Wait until /readyz says yes."""
        until(
            lambda: self.get("/readyz")[0] == 200 or not self.running,
            lambda: f"ready; /readyz: {self.get('/readyz')}; stderr: {self.stderr}",
        )
        assert self.running, f"the process ended: {self.stderr}"
        return self

    def metrics(self) -> Metrics:
        status, text = self.get("/metrics")
        assert status == 200, self.stderr
        return Metrics(text)

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def terminate(self) -> None:
        self.signal(signal.SIGTERM)

    def reload(self) -> JSON:
        """Have it read its configuration again; returns what it logs of that."""
        before = len(self._reloads())
        self.signal(signal.SIGHUP)
        reloads = until(
            lambda: self._reloads()[before:] or not self.running,
            lambda: f"a reload; stderr: {self.stderr}",
        )
        assert self.running, f"the process ended: {self.stderr}"
        found: JSON = reloads[0]
        return found

    def _reloads(self) -> list[JSON]:
        return [line for line in self.logs if line["logger"] == "hookbus.reload"]

    def workers(self) -> dict[str, int]:
        """The process ids of its workers, by name; of each the one that was started last."""
        return {
            line["worker"]: line["pid"] for line in self.logs if line["message"] == "worker started"
        }

    def kill(self) -> None:
        """SIGKILL; returns when it is dead."""
        self._popen.kill()
        self._popen.wait()

    def wait(self, patience: float = PATIENCE) -> int:
        """The exit code."""
        try:
            return self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {patience} s: {self.stderr}")

    def stop(self) -> None:
        """End it as a platform does, and expect it to end well. Before the interpreter runs our
        code, a signal is nobody's: so this waits until the process answers."""
        self.url("/")
        self.terminate()
        assert self.wait() == 0, self.stderr


class Metrics:
    """One answer of /metrics."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._samples: dict[Sample, float] = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """The value of one series. Raises KeyError if there is none."""
        return self._samples[name, frozenset(labels.items())]

    def by(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """The series of a metric with these labels, by another label; the zeros left out."""
        wanted = set(labels.items())
        return {
            dict(at)[label]: value
            for (sample, at), value in self._samples.items()
            if sample == name and wanted <= at and value
        }

    def total(self, name: str) -> float:
        """The sum over all series of a metric."""
        return sum(value for (sample, _), value in self._samples.items() if sample == name)

    def labels(self, name: str, label: str) -> list[tuple[str, dict[str, str]]]:
        """All series of a metric: the value of one label, and all labels."""
        found = [dict(at) for sample, at in self._samples if sample == name]
        return [(at[label], at) for at in found]


class Processes:
    """Starts processes of hookbus, and kills what still runs at the end; they get `environment` in
    addition to that of the tests."""

    def __init__(self, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self._started: list[Service] = []
        self._environment = environment

    def running(self) -> list[Service]:
        """Those that run now."""
        return [service for service in self._started if service.running]

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for service in self._started:
            if service.running:
                service.kill()

    def run(self, setup: Setup, *arguments: str, listen: str = "127.0.0.1:0") -> Service:
        """Start `hookbus run` on a written configuration."""
        number = len(self._started)
        stdout, stderr = (setup.folder / f"run-{number}.{name}" for name in ("out", "err"))
        command = [*HOOKBUS, "run", "-c", str(setup.file), "--listen", listen, *arguments]
        with stdout.open("wb") as out, stderr.open("wb") as err:
            # A session of its own: a Ctrl-C for pytest is not one for the service.
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        service = Service(" ".join(arguments), popen, stdout, stderr)
        self._started.append(service)
        return service


def command(
    *arguments: str, stdin: bytes = b"", code: int = 0
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of hookbus to its end, and expect this exit code."""
    done = subprocess.run(
        [*HOOKBUS, *arguments], input=stdin, capture_output=True, timeout=PATIENCE
    )
    assert done.returncode == code, (done.returncode, done.stderr.decode(errors="replace"))
    return done


def publish(setup: Setup, lines: list[bytes]) -> None:
    """Send lines through `hookbus publish`."""
    stdin = b"".join(line + b"\n" for line in lines)
    done = command("publish", "-c", str(setup.file), "--ingress", "agents", stdin=stdin)
    assert done.stderr.split() == [str(len(lines)).encode()]


def tail(setup: Setup, topic: str) -> list[bytes]:
    """What `hookbus tail` prints of a topic of this setup."""
    done = command("tail", "-c", str(setup.file), "--topic", setup.topic(topic))
    return done.stdout.splitlines()


def records(setup: Setup, topic: str) -> list[Record]:
    """The records of a topic of this setup."""
    return asyncio.run(_scan(build_bus.bus(config_file.load(setup.file)), setup.topic(topic)))


def journal(setup: Setup, topic: str) -> list[Record]:
    """The records of a topic of the failure journal."""
    return asyncio.run(_scan(SqliteBus(setup.journal), topic))


async def _scan(bus: Bus, topic: str) -> list[Record]:
    try:
        await bus.open([topic])
        return [record async for record in bus.scan(topic, follow=False)]
    finally:
        await bus.close()


def lines(path: Path) -> list[bytes]:
    """The complete lines of a file that may not be there yet."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    return text[: text.rfind(b"\n") + 1].splitlines()


def by_source(events: list[JSON]) -> Mapping[str, list[str]]:
    """The ids of each source's events, in order."""
    found: dict[str, list[str]] = {}
    for event in events:
        found.setdefault(event["source"], []).append(event["id"])
    return found


def stream(count: int, *, sources: int = 8, start: int = 0) -> list[bytes]:
    """Small valid events, numbered through; the sources take turns."""
    return [
        json.dumps(
            {
                "id": f"evt-{number:06}",
                "source": f"urn:example:agent:{number % sources}",
                "type": "user.message.inbound",
                "time": "2026-03-12T09:14:02Z",
                "harness": {"name": "atlas-code", "version": "2.3.1"},
                "session": {"id": f"ses-{number % sources}"},
                "message": {
                    "channel": "slack",
                    "sender": "Maya Okonkwo",
                    "messages": [
                        {
                            "id": f"msg-{number}",
                            "role": "user",
                            "parts": [
                                {
                                    "id": f"part-{number}",
                                    "kind": "text",
                                    "mediaType": "text/plain",
                                    "selection": "body",
                                    "text": f"Is claim {number} paid?",
                                }
                            ],
                        }
                    ],
                },
            }
        ).encode()
        for number in range(start, start + count)
    ]
