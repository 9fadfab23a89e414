"""A real Prometheus with the shipped rules and dashboard watches workers whose backend breaks.

All durations of the rules are a thirtieth of what is shipped; the expressions are as they are.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from hookbus.router.demo.scenario import SESSION
from hookbus.router.types import Output
from tests.brokers import free_port
from tests.integration.dead_letters import send
from tests.official import OfficialServer, official_server
from tests.processes import BusKind, Processes, Setup, stream, until
from tests.prometheus import DASHBOARD, NEEDED, Prometheus, expressions, prometheus

pytestmark = NEEDED

JSON = dict[str, Any]

FACTOR: Final = 30
LARGEST: Final = 64 * 1024
SIEM, POLICY, ARCHIVE = "com.example.siem", "com.example.policy", "com.example.archive"
FORGOTTEN: Final = "com.example.forgotten"
"""A sink that no process runs."""

BOARD: Final = json.loads(DASHBOARD.read_text())
QUERIES: Final = [
    pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
    for panel in BOARD["panels"]
    for target in panel.get("targets", ())
]
VARIABLES: Final = {"$__rate_interval": "1m", "$job": "hookbus", "$route": ".*", "$sink": ".*"}
CALM: Final = (
    "hookbus_journal_pending",
    "hookbus_bus_unavailable_total",
    "hookbus_redaction_errors_total",
    "hookbus_route_events:unaccounted",
    "hookbus_worker_restarts_total",
    "hookbus_config_last_reload_successful",
)
"""What stays at zero in this story: the bus is well, and so is hookbus."""
_SELECTOR: Final = re.compile(
    r"(?<![\w:])((?:up|ALERTS|process_\w+|hookbus_\w+|job\w*:[\w:]+)(?![\w:])(?:\{[^}]*\})?)"
)


class Evidence:
    """What Prometheus said, and when."""

    def __init__(self) -> None:
        self.stopped: JSON = {}
        self.answers: dict[str, list[tuple[JSON, float]]] = {}
        self.selected: dict[str, list[JSON]] = {}
        self.chosen: dict[str, list[str]] = {}
        self.mended: list[JSON] = []
        self.unaccounted: list[tuple[JSON, float]] = []
        self.alone: JSON = {}
        self.rules: list[JSON] = []


def _substituted(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def _configure(setup: Setup, port: int) -> None:
    setup.tree["workers"] = 2
    setup.tree["bus"]["sqlite"]["max_message"] = f"{LARGEST}B"
    setup.route("siem", capture="metadata")
    setup.route("archive", capture="full")
    setup.route("review", {"type": ["user.*"]}, capture="redacted", redact=True)
    setup.route("pulse", {"type": "tool.*"}, capture="none")
    retry = {"deadline": "200ms", "retry": {"initial": "20ms", "maximum": "200ms"}}
    setup.sink(SIEM, "siem", http={"url": f"http://127.0.0.1:{port}/siem"}, **retry)
    gone = {"url": f"http://127.0.0.1:{free_port()}/hooks"}
    setup.sink(POLICY, "pulse", policy="fail-open", http=gone, **retry)
    setup.file_sink(ARCHIVE, "archive", "failures")
    setup.file_sink(FORGOTTEN, "archive")
    setup.journal_only(ARCHIVE)
    setup.write()


def _input(setup: Setup, values: list[bytes]) -> list[Output]:
    return [Output(setup.topic("in"), None, value) for value in values]


def _as_large_as_can_be(setup: Setup) -> Output:
    """A record that the bus takes, and of which it can't take a full copy with headers."""
    event = json.loads(stream(1, start=900)[0])
    event["message"]["messages"][0]["parts"][0]["text"] = ""
    empty = Output(setup.topic("in"), None, json.dumps(event).encode())
    event["message"]["messages"][0]["parts"][0]["text"] = "a" * (LARGEST - empty.size)
    return Output(setup.topic("in"), None, json.dumps(event).encode())


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    folder = tmp_path_factory.mktemp("watched")
    setup, port = Setup(BusKind("sqlite"), folder, partitions=2), free_port()
    _configure(setup, port)
    with ExitStack() as stack:
        processes = stack.enter_context(Processes())
        backend = ExitStack()
        stack.enter_context(backend)
        server = backend.enter_context(official_server(port))
        parts = ("router", *(f"sink:{name}" for name in (SIEM, POLICY, ARCHIVE)))
        service = processes.run(setup, *(f"--only={part}" for part in parts)).ready()
        target = service.url("").removeprefix("http://")
        watching = stack.enter_context(prometheus(folder, [target], FACTOR))
        found = Evidence()
        session = SESSION.read_bytes().splitlines()
        _flow(setup, server, [*session, b"no event", b'{"type": "nonsense"}'], len(session))
        backend.close()
        _break(setup, watching, found)
        server = stack.enter_context(official_server(port))
        until(lambda: len(server.received.get("/siem", ())) == 20, "what waited")
        until(lambda: not watching.firing("HookbusSinkStopped"), "the alert resolved")
        found.mended = server.received["/siem"]
        found.unaccounted = watching.query(
            'count_over_time(ALERTS{alertname="HookbusBalanceBroken"}[1h])'
        )
        (found.alone,) = until(lambda: watching.firing("HookbusNoMembers"), "the alert")
        found.rules = watching.rules()
        yield found


def _flow(setup: Setup, server: OfficialServer, values: list[bytes], valid: int) -> None:
    """Everything is well; two records are refused, and one is too large for one route."""
    send(setup, [*_input(setup, values), _as_large_as_can_be(setup)])
    until(lambda: len(server.received.get("/siem", ())) == valid + 1, "all delivered")


def _break(setup: Setup, watching: Prometheus, found: Evidence) -> None:
    """The SIEM is gone while events go on, until somebody would be called."""
    send(setup, _input(setup, stream(20)))
    (found.stopped,) = until(lambda: watching.firing("HookbusSinkStopped"), "the alert")
    queries = [_substituted(parameter.values[0]) for parameter in QUERIES]

    def answered() -> bool:
        found.answers = {query: watching.query(query) for query in queries}
        return all(_tells(query, answer) for query, answer in found.answers.items())

    until(answered, lambda: str([q for q, a in found.answers.items() if not _tells(q, a)]))
    for expression in (*expressions(), *queries):
        for selector in _SELECTOR.findall(expression):
            found.selected[selector] = watching.series(selector)
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
            assert asked is not None
            found.chosen[variable["name"]] = watching.values(asked[2], _substituted(asked[1]))


def _tells(query: str, answer: list[tuple[JSON, float]]) -> bool:
    """Whether there are data, and something happened unless nothing should."""
    values = [value for _, value in answer if math.isfinite(value)]
    return bool(values) and (any(values) or any(name in query for name in CALM))


def test_the_alert_for_a_stopped_sink_fires_when_its_backend_breaks(evidence: Evidence) -> None:
    labels = {"alertname": "HookbusSinkStopped", "job": "hookbus", "sink": SIEM}
    assert evidence.stopped["labels"] == {**labels, "severity": "critical"}
    assert SIEM in evidence.stopped["annotations"]["summary"]


def test_it_resolves_when_the_backend_is_mended_and_has_got_what_waited(evidence: Evidence) -> None:
    ids = [json.loads(line)["id"] for line in stream(20)]
    assert sorted(event["id"] for event in evidence.mended) == ids


def test_the_balance_holds_at_every_scrape(evidence: Evidence) -> None:
    assert evidence.unaccounted == []


def test_a_sink_that_no_process_runs_is_missed_and_no_other_loop_is(evidence: Evidence) -> None:
    assert evidence.alone["labels"]["loop"] == f"sink:{FORGOTTEN}"


def test_prometheus_evaluates_every_rule_without_an_error(evidence: Evidence) -> None:
    assert {rule["name"]: rule["lastError"] for rule in evidence.rules if "lastError" in rule} == {}
    assert {rule["health"] for rule in evidence.rules} == {"ok"}
    assert len(evidence.rules) == len(expressions())


def test_everything_that_a_rule_or_a_panel_selects_exists(evidence: Evidence) -> None:
    """A name or a label value that is misspelt would never alarm anybody."""
    assert len(evidence.selected) > 30
    assert [selector for selector, series in evidence.selected.items() if not series] == []


@pytest.mark.parametrize("query", QUERIES)
def test_every_panel_of_the_dashboard_has_data(evidence: Evidence, query: str) -> None:
    assert _tells(query, evidence.answers[_substituted(query)])


def test_the_variables_of_the_dashboard_offer_what_there_is(evidence: Evidence) -> None:
    assert evidence.chosen == {
        "job": ["hookbus"],
        "route": ["archive", "pulse", "review", "siem"],
        "sink": sorted((ARCHIVE, POLICY, SIEM)),
    }
