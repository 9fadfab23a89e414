"""What registration documents come to: routes, sinks, notes, and what is refused."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from agenthooksprotocol.runtime import Validator
from msgspec import Struct

from hookbus.policies.levels import Level
from hookbus.router import build
from hookbus.router.configuration import plan
from hookbus.router.configuration.config import HttpBackend, Route, SinkConfig
from hookbus.router.configuration.config_file import parse
from hookbus.router.configuration.registration import Registered, merge, register, topic_of
from hookbus.router.configuration.units import Secret
from tests.corpus import events
from tests.processes import BusKind, Processes, Setup, command, publish, until

JSON = dict[str, Any]

CANARY = "s3cret-canary"
CONFIG = """
bus: {sqlite: {path: bus.db}}
ingress: {agents: {topics: [agents.hooks]}}
routes: {siem: {topic: hookbus.siem}}
sinks:
  archive: {topics: [hookbus.failures], file: {path: a.jsonl}, policy: fail-closed}
failures: {topic: hookbus.failures, journal: journal.db, journal_only: [archive]}
dead_letters: {topic: hookbus.dead}
"""
STDIO = {"type": "stdio", "command": "x", "lifecycle": "persistent"}
UPLOAD = {"endpoint": "https://siem.example/up", "timeoutMs": 1, "maxBytes": 1}


def observe(*selectors: str, **members: Any) -> JSON:
    content = {"default": "metadata"}
    return {"events": list(selectors), "mode": "observe", "content": content, **members}


def intercept(*selectors: str) -> JSON:
    policy = {"timeoutMs": 500, "failurePolicy": "fail-closed"}
    return {**observe(*selectors), "mode": "intercept", **policy}


def backend(*subscriptions: JSON, **members: Any) -> JSON:
    transport = {"type": "http", "url": "https://siem.example/hooks"}
    return {
        "id": "com.example.siem",
        "transport": {**transport, **members.pop("transport", {})},
        "subscriptions": list(subscriptions),
        **members,
    }


def registered(
    *backends: JSON, capture: Level = "metadata", environment: dict[str, str] | None = None
) -> Registered:
    raw = json.dumps({"protocolVersion": "draft", "hooks": list(backends)}).encode()
    return register("r.json", raw, capture, lambda backend: environment)


def notes(document: Registered) -> dict[str, str]:
    return {note.path: note.note for note in document.notes}


def places(document: Registered) -> list[str]:
    return [problem.partition(": ")[0].removeprefix("r.json#") for problem in document.problems]


def test_each_observe_subscription_is_a_route_to_a_topic_that_the_backends_sink_reads() -> None:
    document = registered(
        backend(
            observe("tool.*", "session.end", content={"default": "omit", "text": "body"}),
            intercept("tool.before"),
            observe("turn.*", "*", includeNative=True),
        ),
        capture="full",
    )
    assert document.problems == ()
    first, second = (f"hookbus.hooks.com.example.siem.{number}" for number in (0, 2))
    assert document.routes == {
        "com.example.siem.0": Route(
            topic=first,
            match={"type": ["tool.*", "session.end"]},
            capture="full",
            content={"default": "omit", "text": "body"},
            include_native=False,
            format="ahp",
        ),
        "com.example.siem.2": Route(
            topic=second,
            match={},
            capture="full",
            content={"default": "metadata"},
            include_native=True,
            format="ahp",
        ),
    }
    assert document.sinks == {
        "com.example.siem": SinkConfig(
            topics=[first, second],
            policy="fail-open",
            http=HttpBackend(url="https://siem.example/hooks"),
        )
    }


def test_what_is_for_harnesses_is_skipped_with_a_note() -> None:
    document = registered(
        backend(observe("*"), intercept("*")),
        {"id": "a.b", "transport": STDIO, "subscriptions": [observe("*")]},
        {"id": "a.c", "transport": {"type": "http", "url": "https://x.example"}},
        backend(intercept("*"), id="a.d", authentication={"type": "bearer", "tokenRef": "x"}),
    )
    assert (document.problems, list(document.sinks)) == ((), ["com.example.siem"])
    skipped = [path for path, note in notes(document).items() if note.startswith("skipped: ")]
    assert skipped == [
        "/hooks/0/subscriptions/1",
        "/hooks/1",
        "/hooks/2",
        "/hooks/3/subscriptions/0",
    ]


@pytest.mark.parametrize(
    "hook",
    [
        backend(intercept("*")),
        {"id": "a.b", "transport": STDIO, "subscriptions": [observe("*")]},
        {"id": "a.c", "transport": {"type": "http", "url": "https://x.example"}},
    ],
)
def test_a_document_that_leaves_nothing_is_refused(hook: JSON) -> None:
    (problem,) = registered(hook).problems
    assert problem.startswith("r.json#: leaves nothing to deliver")


def test_what_is_not_applied_is_noted() -> None:
    document = registered(backend(observe("*", filters={"toolKinds": ["x"]}, upload=UPLOAD), x=1))
    assert document.problems == ()
    assert notes(document) == {
        "/hooks/0/x": "unknown to AHP, and ignored",
        "/hooks/0/subscriptions/0/filters": "not applied: AHP means them as hints",
        "/hooks/0/subscriptions/0/upload": "not applied: references pass as they are",
        "/hooks/0": "observe subscriptions have no failure policy; it is fail-open",
    }


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"transport": {"url": "http://siem.example/hooks"}}, "/transport/url"),
        ({"transport": {"url": "http://10.0.0.1/hooks"}}, "/transport/url"),
        ({"transport": {"url": "https://10.0.0.1/hooks"}}, "/transport/url"),
        ({"transport": {"url": f"https://u:{CANARY}@siem.example"}}, "/transport/url"),
        ({"transport": {"url": f"https://siem.example/#{CANARY}"}}, "/transport/url"),
        ({"transport": {"headers": {"X-A": f"{CANARY}\r\nY: z"}}}, "/transport/headers/X-A"),
        ({"transport": {"headers": {"X-A": f"{CANARY}\u00e9"}}}, "/transport/headers/X-A"),
        ({"transport": {"headers": {f"a {CANARY}": "x"}}}, "/transport/headers"),
        ({"transport": {"headers": {"Host": CANARY}}}, "/transport/headers/Host"),
        ({"transport": {"headers": {"X": {"valueRef": CANARY}}}}, "/transport/headers/X/valueRef"),
        ({"transport": {"headers": {"X": {"valueEnv": CANARY}}}}, "/transport/headers/X/valueEnv"),
        ({"transport": {"headers": {"X": {"valueEnv": "GONE"}}}}, "/transport/headers/X/valueEnv"),
        ({"transport": {"headers": {"X": {"valueEnv": "EMPTY"}}}}, "/transport/headers/X/valueEnv"),
        ({"transport": {"headers": {"X": {"valueEnv": "BROKEN"}}}}, "/transport/headers/X"),
        ({"authentication": {"type": "bearer", "tokenEnv": "GONE"}}, "/authentication/tokenEnv"),
        ({"authentication": {"type": "bearer", "tokenEnv": "EMPTY"}}, "/authentication/tokenEnv"),
        ({"authentication": {"type": "bearer", "tokenEnv": "BROKEN"}}, "/authentication/tokenEnv"),
        ({"authentication": {"type": "bearer", "tokenRef": CANARY}}, "/authentication/tokenRef"),
        (
            {
                "authentication": {
                    "type": "oauth",
                    "resource": CANARY,
                    "issuer": f"https://{CANARY}.example",
                    "clientId": CANARY,
                    "flow": "client_credentials",
                }
            },
            "/authentication/type",
        ),
        ({"authentication": {"type": "mtls", "key": CANARY}}, "/authentication/type"),
        ({"subscriptions": [observe("foo.*")]}, "/subscriptions/0/events/0"),
        ({"subscriptions": [observe("*"), intercept("hook.*")]}, "/subscriptions/1/events/0"),
        ({"subscriptions": [observe("*", scope="project")]}, "/subscriptions/0/scope"),
        ({"subscriptions": [observe("*", timeoutMs=1)]}, "/subscriptions/0/timeoutMs"),
        ({"subscriptions": [observe("*", content={"text": "body"})]}, "/subscriptions/0/content"),
        ({"id": CANARY}, "/id"),
    ],
)
def test_what_the_router_cannot_do_is_refused_with_its_place_and_no_value(
    members: JSON, place: str
) -> None:
    environment = {"EMPTY": "", "BROKEN": f"{CANARY}\n"}
    document = registered(
        backend(observe("*")) | backend(observe("*"), **members), environment=environment
    )
    assert places(document) == [f"/hooks/0{place}"]
    assert CANARY not in repr(document.problems) + repr(document.notes)


@pytest.mark.parametrize(
    "members",
    [
        {"transport": {"url": "http://127.0.0.1:8080/hooks"}},
        {"transport": {"url": "http://localhost:8080/hooks"}},
        {"subscriptions": [observe("*", scope="managed", disableable=False)]},
        {"subscriptions": [observe("*", scope="user", disableable=True)]},
    ],
)
def test_what_the_router_can_do_is_not_refused(members: JSON) -> None:
    assert registered(backend(observe("*")) | backend(observe("*"), **members)).problems == ()


def test_all_problems_of_all_backends_are_told_at_once() -> None:
    document = registered(
        backend(
            observe("foo.*"),
            observe("*", scope="project"),
            transport={"url": "http://siem.example", "headers": {"Host": "x", "X": "\r", "Y": "y"}},
            authentication={"type": "bearer", "tokenRef": "x"},
        ),
        backend(observe("*"), authentication={"type": "bearer", "tokenEnv": "GONE"}),
        environment={},
    )
    assert sorted(places(document)) == [
        "/hooks/0/authentication/tokenRef",
        "/hooks/0/id",
        "/hooks/0/subscriptions/0/events/0",
        "/hooks/0/subscriptions/1/scope",
        "/hooks/0/transport/headers/Host",
        "/hooks/0/transport/headers/X",
        "/hooks/0/transport/url",
        "/hooks/1/authentication/tokenEnv",
        "/hooks/1/id",
    ]


def test_credentials_are_references_to_the_environment() -> None:
    headers = {"X-One": "1", "X-Two": {"valueEnv": "TWO"}, "x-one": "last"}
    (sink,) = registered(
        backend(
            observe("*"),
            transport={"headers": headers},
            authentication={"type": "bearer", "tokenEnv": "TOKEN", "token": CANARY},
        ),
        environment={"TOKEN": "t", "TWO": "2"},
    ).sinks.values()
    assert sink.http is not None
    assert sink.http.bearer == Secret(env="TOKEN")
    assert sink.http.headers == {"X-Two": "2", "x-one": "last"}
    assert CANARY not in repr(sink)


def test_a_configured_authorization_header_wins_over_the_authentication() -> None:
    document = registered(
        backend(
            observe("*"),
            transport={"headers": {"authorization": "Basic eDp5"}},
            authentication={"type": "bearer", "tokenEnv": "TOKEN"},
        ),
        environment={"TOKEN": "t"},
    )
    assert document.problems == ()
    http = document.sinks["com.example.siem"].http
    assert http is not None
    assert (http.bearer, http.headers) == (None, {"authorization": "Basic eDp5"})
    assert "/hooks/0/authentication" in notes(document)


def test_where_credentials_cannot_be_known_a_note_tells_what_is_needed() -> None:
    document = registered(
        backend(
            observe("*"),
            transport={"headers": {"X": {"valueEnv": CANARY.replace("-", "_")}}},
            authentication={"type": "bearer", "tokenEnv": "GONE"},
        )
    )
    assert document.problems == ()
    needed = [path for path, note in notes(document).items() if "is needed" in note]
    assert needed == ["/hooks/0/authentication/tokenEnv", "/hooks/0/transport/headers/X/valueEnv"]


@pytest.mark.parametrize("length", [3, 200, 249, 500])
def test_a_topic_name_is_legal_and_one_subscriptions_alone(length: int) -> None:
    one, other = ("a." + letter * (length - 2) for letter in "xy")
    names = {topic_of(one, 1), topic_of(one, 2), topic_of(other, 1), topic_of(one + "z", 1)}
    assert len(names) == 4
    assert max(map(len, names)) <= 249
    assert all(plan_accepts(name) for name in names)


def plan_accepts(topic: str) -> bool:
    text = CONFIG.replace("hookbus.siem", topic)
    return plan.problems(parse(text), build.event_types()) == []


def test_a_merged_configuration_goes_through_the_ordinary_checks() -> None:
    config, problems = merge(parse(CONFIG), [registered(backend(observe("*")))])
    assert problems == []
    assert plan.problems(config, build.event_types()) == []
    assert plan.audit_sinks(config) == ("archive",)
    alone = parse(CONFIG.replace("topics: [hookbus.failures]", "topics: [hookbus.siem]"))
    config, _ = merge(alone, [registered(backend(observe("*")))])
    found = plan.problems(config, build.event_types())
    assert any(text.startswith("sinks.com.example.siem: its failures") for text in found)


def test_names_that_are_taken_are_problems() -> None:
    taken = CONFIG.replace("siem:", "com.example.siem.0:").replace("archive", "com.example.siem")
    document = registered(backend(observe("*"), observe("tool.*")))
    _, problems = merge(parse(taken), [document])
    assert problems == [
        "r.json#/hooks/0/subscriptions/0: there is a route com.example.siem.0 already",
        "r.json#/hooks/0/id: there is a sink com.example.siem already",
    ]
    _, problems = merge(parse(CONFIG), [document, document])
    assert len(problems) == 3
    taken = CONFIG.replace("hookbus.siem", "hookbus.hooks.com.example.siem.1")
    (problem,) = merge(parse(taken), [document])[1]
    assert problem.startswith("r.json#/hooks/0/subscriptions/1: hookbus.hooks.com.example.siem.1")


class Received:
    """What a backend got: `events`, and the `headers` of each request, by lower-case name."""

    def __init__(self) -> None:
        self.port = 0
        self.events: list[JSON] = []
        self.headers: list[dict[str, str]] = []


@contextlib.contextmanager
def backend_server() -> Iterator[Received]:
    """An HTTP backend on this machine that takes what the official validator accepts."""
    received, validator = Received(), Validator()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            validator.validate("observe-notification", message)
            received.headers.append({name.lower(): self.headers[name] for name in self.headers})
            received.events.append(message["params"]["event"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield received
        finally:
            server.shutdown()
            thread.join()


def configured(folder: Path) -> Setup:
    made = Setup(BusKind("sqlite"), folder)
    made.file_sink("archive", "failures")
    made.journal_only("archive")
    made.write()
    return made


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return configured(tmp_path)


def written(setup: Setup, *backends: JSON) -> str:
    path = setup.folder / "registration.json"
    path.write_text(json.dumps({"protocolVersion": "draft", "hooks": list(backends)}))
    return str(path)


SENT = [event for _, event in sorted(events.maximal().items())]
WANTED = [e for e in SENT if e["type"].startswith("tool.") or e["type"] == "session.end"]


class Delivered(Struct):
    """What a backend got from a service that has ended, and what the service said."""

    events: list[JSON]
    headers: list[dict[str, str]]
    stderr: str
    notes: list[str]


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivered]:
    setup = configured(tmp_path_factory.mktemp("registration"))
    with pytest.MonkeyPatch.context() as patch, backend_server() as got, Processes() as processes:
        patch.setenv("HOOKBUS_TEST_TOKEN", CANARY)
        patch.setenv("HOOKBUS_TEST_TENANT", "acme")
        file = written(
            setup,
            backend(
                observe("tool.*", "session.end", content={"default": "omit", "text": "body"}),
                transport={
                    "url": f"http://127.0.0.1:{got.port}/hooks",
                    "headers": {"X-Tenant": {"valueEnv": "HOOKBUS_TEST_TENANT"}},
                },
                authentication={"type": "bearer", "tokenEnv": "HOOKBUS_TEST_TOKEN", "token": "x"},
            ),
        )
        options = ("--registration", file, "--registration-capture", "full")
        service = processes.run(setup, *options)
        publish(setup, [json.dumps(event).encode() for event in SENT])
        until(lambda: len(got.events) >= len(WANTED), lambda: service.stderr)
        service.stop()
        notes = [line["path"] for line in service.logs if line["message"] == "registration"]
        yield Delivered(got.events, got.headers, service.stderr, notes)


def test_a_running_service_delivers_to_a_backend_the_events_that_it_selects(
    delivered: Delivered,
) -> None:
    got = sorted((event["type"], event["id"]) for event in delivered.events)
    assert got == [(event["type"], event["id"]) for event in WANTED]


def test_a_delivered_event_holds_the_content_that_is_selected_and_no_native(
    delivered: Delivered,
) -> None:
    assert not any("native" in event for event in delivered.events)
    kinds = {(part["kind"], part["selection"]) for part in parts_in(delivered.events)}
    assert ("text", "body") in kinds
    assert ("attachment", "body") not in kinds


def test_requests_carry_the_credentials_and_nothing_else_shows_them(delivered: Delivered) -> None:
    assert {headers["x-tenant"] for headers in delivered.headers} == {"acme"}
    assert {headers["authorization"] for headers in delivered.headers} == {f"Bearer {CANARY}"}
    assert CANARY not in delivered.stderr
    assert "/hooks/0/authentication/token" in delivered.notes


def parts_in(value: Any) -> Iterator[JSON]:
    if isinstance(value, dict) and {"kind", "mediaType", "selection"} <= set(value):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from parts_in(member)


def test_a_plan_shows_the_routes_and_sinks_of_a_document_and_its_notes(setup: Setup) -> None:
    file = written(
        setup, backend(observe("tool.*"), authentication={"type": "bearer", "tokenEnv": "GONE"})
    )
    done = command("plan", "-c", str(setup.file), "--registration", file)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    topic = "hookbus.hooks.com.example.siem.0"
    content = {"default": "metadata"}
    assert told[0] == {
        "route": "com.example.siem.0",
        "capture": "metadata",
        "topic": topic,
        "content": content,
        "native": False,
        "format": "ahp",
    }
    assert (told[2]["sink"], told[2]["topics"]) == ("com.example.siem", [topic])
    assert (told[2]["policy"], told[2]["failures"]["audit_sinks"]) == ("fail-open", ["archive"])
    assert [line["path"] for line in told[3:]] == ["/hooks/0/authentication/tokenEnv", "/hooks/0"]


def test_a_run_is_refused_without_the_credentials_and_a_part_that_needs_none_is_not(
    setup: Setup,
) -> None:
    bearer = {"type": "bearer", "tokenEnv": "HOOKBUS_TEST_GONE"}
    file = written(setup, backend(observe("*"), authentication=bearer))
    run = ("run", "-c", str(setup.file), "--registration", file)
    said = command(*run, code=2).stderr.decode()
    assert said.startswith(f"{file}#/hooks/0/authentication/tokenEnv: there is no such")
    said = command(*run, "--only", "router", "--only", "sink:x", code=2).stderr.decode()
    assert said == "--only sink:x: there is no such part\n"


def test_problems_of_all_files_are_told_together(setup: Setup) -> None:
    setup.tree["routes"]["x"] = {"capture": "all"}
    setup.write()
    file = written(setup, backend(observe("foo.*")))
    gone = str(setup.folder / "gone.json")
    options = ("--registration", file, "--registration", gone)
    said = command("plan", "-c", str(setup.file), *options, code=2).stderr.decode()
    for problem in (
        "routes.x.capture: ",
        "routes.x.topic: ",
        f"{file}#/hooks/0/sub",
        f"{gone}: can't",
    ):
        assert problem in said
