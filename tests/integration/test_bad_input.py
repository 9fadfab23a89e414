"""What can't be processed costs one dead letter each and nothing else; a broker may come late."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from hookbus.router import build_bus
from hookbus.router.configuration import config_file
from hookbus.router.types import Output, Record
from tests.brokers import Broker, chosen
from tests.processes import (
    BusKind,
    Metrics,
    Processes,
    Setup,
    by_source,
    command,
    lines,
    publish,
    records,
    stream,
    tail,
    until,
)

JSON = dict[str, Any]

CANARY: Final = "Rosalind-Achterberg"
SOURCE: Final = "urn:example:agent:bad"
LIMIT: Final = 512 * 1024
"""The largest event that these setups take, in bytes; no larger than what every broker carries."""


def _event(**members: Any) -> bytes:
    """A valid event, changed."""
    event = {
        "id": f"evt-{CANARY}",
        "source": SOURCE,
        "type": "session.end",
        "time": "2026-03-12T09:14:02Z",
        "harness": {"name": "atlas-code", "version": "2.3.1"},
        "session": {"id": "ses-1"},
        "outcome": "completed",
        "reason": f"{CANARY} closed the window",
    }
    return json.dumps(event | members).encode()


class Bad(NamedTuple):
    """A value, the code that refuses it, and where the fault is."""

    value: bytes | None
    code: str
    path: str | None = None
    rule: str | None = None


BAD: Final[dict[str, Bad]] = {
    "unknown type": Bad(_event(type="tool.teleport"), "unsupported_type", "/type"),
    "no protocol": Bad(f'{{"person": "{CANARY}"}}'.encode(), "unknown_protocol"),
    "schema": Bad(_event(outcome=CANARY), "schema", "/outcome", "enum"),
    "required": Bad(_event(session={"cwd": CANARY}), "schema", "/session", "required"),
    "garbage": Bad(b"\x00\xff\xfe" + CANARY.encode(), "invalid_utf8"),
    "no JSON": Bad(b"{" + CANARY.encode(), "invalid_json"),
    "two values": Bad(_event() + b"\n" + _event(), "invalid_json"),
    "too large": Bad(_event(reason=CANARY + "x" * LIMIT), "too_large"),
    "too deep": Bad(b"[" * 10_000 + f'"{CANARY}"'.encode() + b"]" * 10_000, "too_deep"),
    "deep in an event": Bad(
        _event(native=CANARY)[:-1] + b',"extensions":' + b'{"a.b":' * 10_000 + b"1" + b"}" * 10_001,
        "too_deep",
    ),
    "duplicate key": Bad(_event()[:-1] + f',"id":"{CANARY}"}}'.encode(), "duplicate_key", "/id"),
    "lone surrogate": Bad(_event()[:-1] + b',"native":"\\ud800"}', "invalid_utf8"),
    "overflow": Bad(_event()[:-1] + b',"native":1e999}', "number_range"),
    "blank line": Bad(b"", "invalid_json"),
    "tombstone": Bad(None, "invalid_json"),
}


class Swamp:
    """What came of a topic full of bad records with good ones in between."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.read = records(setup, "in")
        self.dead = records(setup, "dead")
        self.letters: list[JSON] = [json.loads(letter.value or b"") for letter in self.dead]
        self.traces = ""
        self.metrics = Metrics("")

    def record(self, bad: Bad) -> Record:
        """The record that holds a bad value; each value is there once."""
        (found,) = (record for record in self.read if record.value == bad.value)
        return found

    def letters_of(self, record: Record) -> list[JSON]:
        at = (record.topic, record.partition, record.offset)
        return [le for le in self.letters if (le["topic"], le["partition"], le["offset"]) == at]


def _send(setup: Setup, outputs: list[Output]) -> None:
    """Append records as any producer may."""

    async def send() -> None:
        bus = build_bus.bus(config_file.load(setup.file))
        try:
            await bus.open([setup.topic("in")])
            await bus.publish(outputs)
        finally:
            await bus.close()

    asyncio.run(send())


def _outputs(setup: Setup) -> list[Output]:
    """The bad values, and between them a stream of good ones."""
    topic = setup.topic("in")
    mixed: list[Output] = []
    for number, (bad, good) in enumerate(zip(BAD.values(), stream(len(BAD)), strict=True)):
        key = f"{CANARY}-{number}".encode() if number % 2 else None
        mixed += [Output(topic, key, bad.value), Output(topic, b"good", good)]
    return mixed


@pytest.fixture(scope="module", params=["metadata", "full"])
def swamp(
    bus: BusKind, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Swamp]:
    setup = Setup(bus, tmp_path_factory.mktemp(bus.kind))
    setup.route("archive", capture="full")
    setup.route("forms", {"type": ["user.elicitation.*"]})
    path = setup.file_sink("archive", "archive", "failures")
    setup.journal_only("archive")
    setup.tree["dead_letters"]["capture"] = request.param
    setup.tree["limits"] = {"max_bytes": f"{LIMIT}B"}
    setup.write()
    _send(setup, _outputs(setup))
    with Processes() as processes:
        service = processes.run(setup)
        until(lambda: len(lines(path)) >= len(BAD), lambda: f"the good events: {service.stderr}")
        until(lambda: len(records(setup, "dead")) >= len(BAD), "the dead letters")
        found = Swamp(setup)
        until(lambda: _balanced(service.metrics()), lambda: service.metrics().text)
        found.metrics = service.metrics()
        found.traces = found.metrics.text + service.get("/readyz")[1]
        service.stop()
        found.traces += service.stderr
        yield found


def _balanced(metrics: Metrics) -> bool:
    return metrics.value("hookbus_in_flight", loop="router") == 0 and sum(
        metrics.by("hookbus_route_events_total", "decision", route="archive").values()
    ) == metrics.value("hookbus_received_total", ingress="agents")


@pytest.mark.parametrize("name", BAD)
def test_each_bad_record_is_one_dead_letter_with_its_code_and_place(
    swamp: Swamp, name: str
) -> None:
    bad = BAD[name]
    record = swamp.record(bad)
    (letter,) = swamp.letters_of(record)
    assert letter["stage"] == "router"
    assert letter["reason"] == bad.code
    assert (letter.get("path"), letter.get("rule")) == (bad.path, bad.rule)
    assert letter.get("size") == (None if bad.value is None else len(bad.value))
    assert letter["timestamp"] == record.timestamp


def test_there_are_no_other_dead_letters(swamp: Swamp) -> None:
    assert len(swamp.letters) == len(BAD)


def test_the_events_around_them_arrive_in_order(swamp: Swamp) -> None:
    delivered = [json.loads(line) for line in lines(swamp.setup.folder / "archive.jsonl")]
    assert by_source(delivered) == by_source([json.loads(line) for line in stream(len(BAD))])


def test_a_dead_letter_quotes_nothing_around_the_bytes(swamp: Swamp) -> None:
    for letter, record in zip(swamp.letters, swamp.dead, strict=True):
        assert CANARY not in json.dumps({k: v for k, v in letter.items() if k != "value"})
        around = (record.key or b"") + b"".join(value for _, value in record.headers)
        assert CANARY.encode() not in around


def test_nothing_of_what_was_refused_is_in_logs_metrics_or_health(swamp: Swamp) -> None:
    assert CANARY not in swamp.traces


def test_a_dead_letter_has_the_bytes_exactly_if_asked_for(swamp: Swamp) -> None:
    full = swamp.setup.tree["dead_letters"]["capture"] == "full"
    for bad in BAD.values():
        (letter,) = swamp.letters_of(swamp.record(bad))
        expected = base64.b64encode(bad.value).decode() if full and bad.value else None
        assert letter.get("value") == expected


def test_the_metrics_count_each_code(swamp: Swamp) -> None:
    codes = Counter(bad.code for bad in BAD.values())
    assert swamp.metrics.by("hookbus_refused_total", "code") == codes


def test_the_balance_of_every_route_holds(swamp: Swamp) -> None:
    received = swamp.metrics.value("hookbus_received_total", ingress="agents")
    for route, good in (("archive", "routed"), ("forms", "filtered")):
        decided = swamp.metrics.by("hookbus_route_events_total", "decision", route=route)
        assert decided == {good: len(BAD), "dead_lettered": len(BAD)}
        assert sum(decided.values()) == received


def test_five_megabytes_are_one_dead_letter(tmp_path: Path, processes: Processes) -> None:
    setup = Setup(BusKind("sqlite"), tmp_path)
    path = _archive(setup)
    huge = _event(reason=CANARY + "x" * 5_000_000)
    publish(setup, [huge, *stream(3)])
    processes.run(setup)
    until(lambda: len(lines(path)) == 3, "the events after it")
    (letter,) = map(json.loads, tail(setup, "dead"))
    assert (letter["reason"], letter["size"]) == ("too_large", len(huge))


def _archive(setup: Setup, **bus: str) -> Path:
    """A written setup with one route to one file."""
    setup.route("archive", capture="full")
    setup.route("siem", capture="metadata")
    path = setup.file_sink("archive", "archive", "failures")
    setup.journal_only("archive")
    setup.tree["bus"].get("kafka", setup.tree["bus"].get("sqlite")).update(bus)
    setup.write()
    return path


def test_a_copy_that_the_bus_does_not_take_is_a_dead_letter_of_its_route_alone(
    bus: BusKind, tmp_path: Path, processes: Processes
) -> None:
    setup = Setup(bus, tmp_path)
    path = _archive(setup)
    _send(setup, [Output(setup.topic("in"), b"k", _event(reason=CANARY + "x" * 300_000))])
    publish(setup, stream(3))
    setup.tree["bus"].get("kafka", setup.tree["bus"].get("sqlite"))["max_message"] = "256KiB"
    setup.write()
    service = processes.run(setup)
    until(lambda: len(lines(path)) == 3, lambda: f"the events after it: {service.stderr}")
    until(lambda: len(records(setup, "siem")) == 4, "all copies at metadata")
    (letter,) = map(json.loads, tail(setup, "dead"))
    assert (letter["reason"], letter["route"]) == ("too_large", "archive")
    service.stop()


def test_publish_takes_every_line_unjudged(setup: Setup) -> None:
    setup.write()
    sent = [b"", b"\xff\x00", b"[]", b'"text"', b"{", _event(), b'{"source": 7}', b"null", b"[1"]
    publish(setup, sent)
    assert sorted(record.value or b"" for record in records(setup, "in")) == sorted(sent)


@pytest.mark.kafka
def test_publish_refuses_a_line_that_the_bus_does_not_take(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    setup = Setup(BusKind("kafka", kafka_bootstrap), tmp_path)
    setup.tree["bus"]["kafka"]["max_message"] = "64KiB"
    setup.write()
    large = _event(reason=CANARY + "x" * 70_000)
    arguments = ("publish", "-c", str(setup.file), "--ingress", "agents")
    said = command(*arguments, stdin=large + b"\n", code=1).stderr.decode()
    assert "the limit is 65536" in said
    assert CANARY not in said


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """A broker that a test may stop and start."""
    with chosen() as broker:
        yield broker


@pytest.mark.kafka
def test_a_broker_that_comes_late_is_waited_for(
    own_broker: Broker, tmp_path: Path, processes: Processes
) -> None:
    own_broker.kill()
    setup = Setup(BusKind("kafka", own_broker.bootstrap), tmp_path)
    path = _archive(setup)
    service = processes.run(setup)
    until(lambda: service.logged("bus unavailable, retrying"), "the broker missed")
    assert service.get("/metrics")[0] == 200
    assert service.get("/readyz")[0] == 503
    assert service.get("/healthz")[0] == 200
    own_broker.start()
    service.ready()
    publish(setup, stream(50))
    until(lambda: len(lines(path)) == 50, lambda: f"all events: {service.stderr}")
    assert service.logged("bus is back")
    service.stop()


@pytest.mark.kafka
def test_a_broker_that_freezes_makes_the_service_unready_and_loses_nothing(
    own_broker: Broker, tmp_path: Path, processes: Processes
) -> None:
    setup = Setup(BusKind("kafka", own_broker.bootstrap), tmp_path)
    usual = setup.tree["bus"]["kafka"]["request_timeout"]
    path = _archive(setup, request_timeout="3s")
    service = processes.run(setup).ready()
    setup.tree["bus"]["kafka"]["request_timeout"] = usual  # for those who publish
    setup.write()
    publish(setup, stream(500))
    until(lambda: lines(path), "the first events")
    own_broker.pause()
    until(lambda: service.get("/readyz")[0] == 503, lambda: f"unready: {service.stderr}")
    assert service.get("/healthz")[0] == 200
    own_broker.resume()
    service.ready()
    publish(setup, stream(500, start=500))
    sent = set(stream(1000))
    until(lambda: set(lines(path)) >= sent, lambda: f"all events: {service.stderr}")
    service.stop()
