"""Dead letters as an operator works with them: what is listed, and what is sent again to whom."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from hookbus.codecs.verdict import Refusal
from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.dead_letters import DeadLetterOffice
from hookbus.router.types import Output, Record
from tests.brokers import free_port
from tests.integration.dead_letters import bury, listed, record, replay, send
from tests.official import official_server
from tests.processes import (
    HOOKBUS,
    BusKind,
    Processes,
    Setup,
    by_source,
    command,
    lines,
    publish,
    records,
    stream,
    until,
)

JSON = dict[str, Any]

CANARY: Final = "Rosalind-Achterberg"
TOO_LARGE: Final = Refusal("too_large")


def _archive(setup: Setup, **route: Any) -> Path:
    """A route to a file."""
    setup.route("archive", **route)
    path = setup.file_sink("archive", "archive", "failures")
    setup.journal_only("archive")
    return path


def _refused(setup: Setup, refused: list[Record]) -> None:
    """Dead letters of records that the router has refused."""
    bury(setup, lambda office: [office.refused(one, TOO_LARGE) for one in refused])


def test_the_list_has_what_is_asked_for_and_never_content(setup: Setup) -> None:
    _archive(setup)
    setup.tree["dead_letters"]["capture"] = "full"
    setup.write()
    secret = Record(
        setup.topic("in"), 1, 5, 1_700_000_000_000, CANARY.encode(), CANARY.encode(),
        (("h", CANARY.encode()),),
    )  # fmt: skip

    def write(office: DeadLetterOffice) -> list[Output]:
        return [
            office.refused(secret, Refusal("schema", "/outcome", "enum")),
            office.refused(secret, Refusal("invalid_json")),
            office.undelivered(record(setup, "archive", 2), "archive", "timeout", "route"),
            office.undelivered(record(setup, "archive", 3), "other", "refused", "message"),
            Output(setup.topic("dead"), None, CANARY.encode()),
        ]

    bury(setup, write)
    every = listed(setup)
    assert len(every) == 4
    places = {f"{one.partition}/{one.offset}" for one in records(setup, "dead")}
    assert len({letter["letter"] for letter in every} & places) == 4
    (schema,) = listed(setup, "--reason", "schema")
    assert schema["path"] == "/outcome"
    assert (schema["topic"], schema["partition"], schema["offset"]) == (setup.topic("in"), 1, 5)
    assert [letter["sink"] for letter in listed(setup, "--sink", "archive")] == ["archive"]
    assert len(listed(setup, "--stage", "sink")) == 2
    assert len(listed(setup, "--stage", "sink", "--reason", "refused")) == 1
    assert len(listed(setup, "--since", "1h")) == len(listed(setup, "--until", "2126-01-01")) == 4
    assert listed(setup, "--until", "1h") == listed(setup, "--since", "2126-01-01") == []
    assert listed(setup, "--counts") == [
        {"stage": "router", "reason": "invalid_json", "count": 1},
        {"stage": "router", "reason": "schema", "count": 1},
        {"stage": "sink", "reason": "refused", "sink": "other", "count": 1},
        {"stage": "sink", "reason": "timeout", "sink": "archive", "count": 1},
    ]
    done = command("deadletters", "list", "-c", str(setup.file))
    assert json.loads(done.stderr) == {"unreadable": 1}
    shown = done.stdout + done.stderr
    assert CANARY.encode() not in shown
    assert base64.b64encode(CANARY.encode()) not in shown


@pytest.mark.parametrize("option", [["--since", "soon"], ["--until", "5 parsecs"]])
def test_a_time_that_is_none_is_refused(tmp_path: Path, option: list[str]) -> None:
    setup = Setup(BusKind("sqlite"), tmp_path)
    setup.write()
    done = command("deadletters", "list", "-c", str(setup.file), *option, code=2)
    assert option[0] in done.stderr.decode()


def test_what_a_limit_refused_is_routed_once_the_limit_is_raised(
    setup: Setup, processes: Processes
) -> None:
    path = _archive(setup, capture="full")
    setup.tree["limits"] = {"max_bytes": "1KiB"}
    setup.write()
    small, large = stream(2)
    large = large.replace(b"Is claim", b"Is claim " + CANARY.encode() * 60)
    headers = (("trace", b"7"),)
    send(setup, [Output(setup.topic("in"), b"own", v, headers) for v in (small, large)])
    service = processes.run(setup)
    until(lambda: lines(path) == [small], lambda: service.stderr)
    until(lambda: len(records(setup, "dead")) == 1, "the dead letter")
    service.stop()
    setup.tree["limits"] = {"max_bytes": "64KiB"}
    setup.write()
    summary = replay(setup)
    assert (summary["letters"], summary["replayed"], summary["refused"]) == (1, 1, {})
    target = setup.topic("in")
    assert summary["by"] == [
        {"stage": "router", "reason": "too_large", "target": target, "count": 1}
    ]
    first, again = [one for one in records(setup, "in") if one.value == large]
    assert (first.key, again.key) == (b"own", b"own")
    assert again.headers == (*first.headers, ("hookbus-attempts", b"1"))
    service = processes.run(setup)
    until(lambda: lines(path) == [small, large], lambda: service.stderr)
    service.stop()
    assert len(records(setup, "dead")) == 1
    second = replay(setup)
    assert (second["letters"], second["replayed"], second["already"]) == (1, 0, 1)
    assert len(records(setup, "in")) == 3
    assert CANARY not in json.dumps([summary, second])


def _broken(setup: Setup, port: int) -> None:
    """A fail-open sink whose backend isn't there, beside an archive of the same topic."""
    setup.sink(
        "gone",
        "archive",
        policy="fail-open",
        http={"url": f"http://127.0.0.1:{port}/gone"},
        deadline="100ms",
        retry={"initial": "20ms", "maximum": "50ms"},
    )


def test_what_a_sink_gave_up_reaches_that_sink_alone_once_and_at_the_routes_present_level(
    setup: Setup, processes: Processes
) -> None:
    port = free_port()
    path = _archive(setup, capture="full")
    _broken(setup, port)
    setup.write()
    sent = stream(6, sources=2)
    publish(setup, sent)
    service = processes.run(setup)
    until(lambda: len(records(setup, "dead")) == 6, lambda: service.stderr)
    until(lambda: len(lines(path)) == 12, "the events and the failures")
    service.stop()
    setup.tree["routes"]["archive"]["capture"] = "metadata"
    setup.write()
    summary = replay(setup, "--sink", "gone")
    assert (summary["replayed"], summary["refused"]) == (6, {})
    assert replay(setup)["already"] == 6
    with official_server(port) as server:
        service = processes.run(setup)
        until(lambda: len(server.received.get("/gone", [])) == 6, lambda: service.stderr)
        service.stop()
        received = server.received["/gone"]
    assert by_source(received) == by_source([json.loads(one) for one in sent])
    assert "Is claim" not in json.dumps(received)
    assert {one["extensions"]["dev.hookbus.capture"]["level"] for one in received} == {"metadata"}
    assert len(lines(path)) == 12
    assert len(records(setup, "archive")) == 6


@contextmanager
def _asked_for_its_keys(*statuses: int) -> Iterator[tuple[str, list[str]]]:
    """A backend that gives these answers; its URL, and the idempotency keys that it has got."""
    answers, keys = iter(statuses), []

    class Backend(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            keys.append(self.headers["Idempotency-Key"])
            self.send_response(next(answers))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Backend) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", keys
        server.shutdown()


def test_a_replay_has_the_idempotency_key_of_the_first_delivery(
    setup: Setup, processes: Processes
) -> None:
    _archive(setup, capture="full")
    with _asked_for_its_keys(400, 204) as (url, keys):
        setup.sink("siem", "archive", http={"url": url})
        setup.write()
        publish(setup, stream(1))
        service = processes.run(setup).ready()
        until(lambda: len(listed(setup)) == 1, lambda: service.stderr)
        assert replay(setup)["replayed"] == 1
        until(lambda: len(keys) == 2, lambda: service.stderr)
        service.stop()
    assert len(set(keys)) == 1


def test_a_replay_that_fails_is_a_failure_of_its_own_and_says_where_the_event_came_from(
    setup: Setup, processes: Processes
) -> None:
    path = _archive(setup, capture="full")
    _broken(setup, free_port())
    setup.write()
    publish(setup, stream(1))
    service = processes.run(setup).ready()
    for attempts in range(3):
        until(lambda: len(listed(setup)) == attempts + 1, lambda: service.stderr)  # noqa: B023
        expected = {"replayed": 1, "already": attempts, "refused": {}}
        assert expected.items() <= replay(setup, "--max-attempts", "3").items()
    until(lambda: len(listed(setup)) == 4, lambda: service.stderr)
    until(lambda: len(lines(path)) == 5, "the event and its failures")
    service.stop()
    letters = listed(setup)
    assert sorted(letter.get("attempts", 0) for letter in letters) == [0, 1, 2, 3]
    assert len({(le["topic"], le["partition"], le["offset"]) for le in letters}) == 1
    assert letters[0]["topic"] == setup.topic("archive")
    failures = [json.loads(line) for line in lines(path)[1:]]
    assert len({failure["id"] for failure in failures}) == 4
    assert {failure["parentEventId"] for failure in failures} == {"evt-000000"}
    last = replay(setup, "--max-attempts", "3", code=1)
    assert (last["replayed"], last["already"], last["refused"]) == (0, 3, {"attempts": 1})
    (told,) = (line for line in last["told"] if "refused" in line)
    assert (told["refused"], told["attempts"], told["sink"]) == ("attempts", 3, "gone")


def test_input_that_is_refused_again_and_again_stays_where_it_is(
    setup: Setup, processes: Processes
) -> None:
    _archive(setup)
    setup.write()
    publish(setup, [b'{"no": "event"}'])
    service = processes.run(setup).ready()
    for attempts in range(2):
        until(lambda: len(listed(setup)) == attempts + 1, lambda: service.stderr)  # noqa: B023
        assert replay(setup, "--max-attempts", "2")["replayed"] == 1
    until(lambda: len(listed(setup)) == 3, lambda: service.stderr)
    assert replay(setup, "--max-attempts", "2", code=1)["refused"] == {"attempts": 1}
    assert replay(setup, "--max-attempts", "3")["replayed"] == 1
    until(lambda: len(listed(setup)) == 4, lambda: service.stderr)
    service.stop()
    assert sorted(letter.get("attempts", 0) for letter in listed(setup)) == [0, 1, 2, 3]


def _buried(setup: Setup, count: int) -> list[bytes]:
    """Records of the ingress with a dead letter each."""
    _archive(setup)
    setup.write()
    sent = stream(count)
    publish(setup, sent)
    _refused(setup, records(setup, "in"))
    return sent


def _contents(setup: Setup, topic: str) -> dict[tuple[int, int], Record]:
    return {(one.partition, one.offset): one for one in records(setup, topic)}


def test_a_dry_run_says_what_would_be_done_and_does_nothing(setup: Setup) -> None:
    _buried(setup, 9)
    _refused(setup, [record(setup, "in", 10**6)])
    before = [_contents(setup, topic) for topic in ("in", "dead")]
    dry = replay(setup, "--dry-run", code=1)
    assert [_contents(setup, topic) for topic in ("in", "dead")] == before
    assert dry == replay(setup, "--dry-run", code=1)
    done = replay(setup, code=1)
    assert dry["dry_run"]
    said = ("letters", "replayed", "already", "refused", "by")
    assert {key: dry[key] for key in said} == {key: done[key] for key in said}
    assert (dry["replayed"], dry["refused"]) == (9, {"gone": 1})
    assert replay(setup, "--dry-run", code=1)["already"] == 9


def test_an_interrupted_replay_goes_on_where_it_was(setup: Setup) -> None:
    sent = _buried(setup, 1000)  # most of a minute at this rate
    replaying = [*HOOKBUS, "deadletters", "replay", "-c", str(setup.file), "--rate", "20"]
    with subprocess.Popen(replaying, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as popen:
        assert popen.stderr is not None
        progress = json.loads(popen.stderr.readline())
        until(lambda: len(records(setup, "in")) >= 1010, "ten of them")
        popen.kill()
    assert progress["replayed"] >= 1
    reached = len(records(setup, "in")) - 1000
    assert reached < 1000
    summary = replay(setup)
    assert summary["already"] + summary["replayed"] == 1000
    assert summary["already"] >= reached - 2
    copies = Counter(one.value for one in records(setup, "in"))
    assert copies.keys() == set(sent)
    # Only the portion that was under way, two records at this rate, can have been sent twice.
    assert min(copies.values()) == 2
    assert sum(copies.values()) <= 2002
    assert replay(setup)["replayed"] == 0


def test_a_record_that_is_gone_is_told_unless_its_letter_has_the_bytes(setup: Setup) -> None:
    _archive(setup)
    setup.write()
    lost = Record(
        setup.topic("in"), 3, 41, 1_700_000_000_000, b"own", CANARY.encode(), (("h", b"1"),)
    )
    _refused(setup, [lost])
    summary = replay(setup, code=1)
    assert (summary["replayed"], summary["refused"]) == (0, {"gone": 1})
    (told,) = (line for line in summary["told"] if "refused" in line)
    assert (told["refused"], told["partition"], told["offset"]) == ("gone", 3, 41)
    setup.tree["dead_letters"]["capture"] = "full"
    setup.write()
    _refused(setup, [lost])
    summary = replay(setup, code=1)
    assert (summary["replayed"], summary["refused"]) == (1, {"gone": 1})
    (found,) = records(setup, "in")
    assert (found.key, found.value) == (lost.key, lost.value)
    assert found.headers == (("h", b"1"), ("hookbus-attempts", b"1"))
    assert CANARY not in json.dumps(summary)


def test_what_retention_has_deleted_is_told(tmp_path: Path) -> None:
    setup = Setup(BusKind("sqlite"), tmp_path)
    _buried(setup, 5)
    path = setup.tree["bus"]["sqlite"]["path"]

    async def expire() -> None:
        bus = SqliteBus(path, retention=0.0, create_topics=False)
        await bus.open([])
        dead = [one async for one in bus.scan(setup.topic("dead"), follow=False)]
        await bus.prune()
        await bus.publish([Output(one.topic, one.key, one.value) for one in dead])
        await bus.close()

    asyncio.run(expire())
    assert replay(setup, code=1)["refused"] == {"gone": 5}


def test_a_letter_whose_way_is_no_longer_configured_is_refused_and_told(setup: Setup) -> None:
    _archive(setup, match={"type": ["tool.*"]}, capture="full")
    setup.route("forms", {"type": ["user.elicitation.*"]})
    setup.sink("tap", "tap", file={"path": str(setup.folder / "tap.jsonl")})
    setup.route("tap")
    setup.write()
    (event,) = stream(1)
    identity = (
        ("ce_specversion", b"1.0"), ("ce_id", b"evt-000000"), ("ce_source", b"urn:example:agent:0"),
        ("ce_type", b"user.message.inbound"), ("hookbus-capture", b"full"),
    )  # fmt: skip
    send(setup, [Output(setup.topic("archive"), b"k", event, identity)])
    (copy,) = records(setup, "archive")

    def write(office: DeadLetterOffice) -> list[Output]:
        return [
            office.refused(record(setup, "elsewhere", 0), TOO_LARGE),
            office.undelivered(copy, "nobody", "timeout", "route"),
            office.undelivered(copy, "tap", "timeout", "route"),
            office.undelivered(copy, "archive", "timeout", "route"),
        ]

    bury(setup, write)
    summary = replay(setup, code=1)
    assert summary["refused"] == {
        "no_ingress": 1, "no_sink": 1, "not_subscribed": 1, "unmatched": 1,
    }  # fmt: skip
    assert summary["replayed"] == 0


def test_one_record_with_several_letters_is_sent_once(setup: Setup) -> None:
    _buried(setup, 3)
    _refused(setup, records(setup, "in"))
    summary = replay(setup)
    assert (summary["letters"], summary["replayed"], summary["already"]) == (6, 3, 3)
    assert len(records(setup, "in")) == 6
