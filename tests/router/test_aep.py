"""AEP events through the pipeline, and in the commands that judge and copy lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from hookbus.codecs.aep_stream import RULES
from hookbus.codecs.headers import read_headers
from hookbus.policies.correlation import Change, Entry
from hookbus.router import build
from hookbus.router.cli import main
from hookbus.router.configuration.config_file import parse
from hookbus.router.memory import Memory
from hookbus.router.pipeline import Outcome
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.types import Output, Record
from tests.corpus import aep_events as corpus
from tests.corpus import events
from tests.upstream import FOLDER, cases, golden, needs_upstream

CONFIG = parse("""
bus: {sqlite: {path: bus.db}}
ingress: {agents: {topics: [in], capture: metadata}}
routes:
  whole: {topic: full, capture: full}
  redacted: {topic: redacted, capture: redacted}
  structure: {topic: metadata}
  least: {topic: none, capture: none}
  plain: {topic: plain, capture: full, include_digests: false, match: {type: [tool.*]}}
dead_letters: {topic: dead}
""")
PIPELINE = build.pipeline(CONFIG, build.decoder(CONFIG))
ROUTES = tuple(CONFIG.routes)
STREAMS = [case for case in cases("invalid/cases.json") if "events" in case]
Tree = dict[str, Any]

FIELDS = [
    {"id": "owner", "type": "string", "label": "Owner", "required": True},
    {
        "id": "zone",
        "type": "select",
        "label": "Zone",
        "choices": [{"id": "eu", "label": "Frankfurt"}, {"id": "us", "label": "Ohio"}],
    },
    {"id": "pin", "type": "number", "label": "Your PIN"},
]


class Play:
    """Events taken one after another by one partition."""

    def __init__(self) -> None:
        self.memory = build.memory(CONFIG)
        self.offset = 0

    def take(self, value: Tree) -> Outcome:
        record = Record("in", 0, self.offset, self.offset * 1000, None, json.dumps(value).encode())
        self.offset += 1
        outcome = PIPELINE.step(record, self.memory)
        assert outcome.refusal is None
        return outcome

    def copies(self, value: Tree) -> dict[str, Tree]:
        outputs = by_topic(self.take(value))
        return {topic: json.loads(output.value or b"") for topic, output in outputs.items()}


def by_topic(outcome: Outcome) -> dict[str, Output]:
    return {output.topic: output for output in outcome.outputs}


def asked(number: int = 1, **more: Any) -> Tree:
    data = {"kind": "form", "prompt": "Who?", "fields": FIELDS}
    return corpus.envelope("attention.requested", "full", data=data, id=f"q{number}", **more)


def answered(values: Tree, *, request: str = "q1", seq: int = 9, capture: str = "full") -> Tree:
    data = {"answer": {"values": values}}
    return corpus.envelope(
        "attention.answered", capture, data=data, id=f"a{seq}", subject=request, seq=seq
    )


@pytest.fixture
def play() -> Play:
    return Play()


def test_each_route_gets_the_copy_that_its_ceiling_allows(play: Play) -> None:
    """The level of an AEP event is its own, whatever the ingress holds for AHP."""
    event = corpus.maximal("tool.completed")
    outputs = by_topic(play.take(event))
    assert outputs["full"].value == json.dumps(event).encode()
    levels = {}
    for topic, output in outputs.items():
        attributes = read_headers(output.headers)
        assert attributes is not None
        assert (attributes.id, attributes.source) == (event["id"], event["source"])
        assert output.key == event["source"].encode()
        copy = json.loads(output.value or b"")
        assert attributes.capture == copy["capture"]
        levels[topic] = copy["capture"]
    below = {"redacted": "metadata", "metadata": "metadata", "none": "none"}
    assert levels == {"full": "full", "plain": "full", **below}


def test_a_route_without_digests_has_none(play: Play) -> None:
    """The rest of its copy is as at its level."""
    event = corpus.maximal("tool.completed")
    rest = {name: value for name, value in event["data"].items() if name != "result_digest"}
    assert play.copies(event)["plain"] == {**event, "data": rest}


def test_an_answer_is_read_with_its_request(play: Play) -> None:
    """The form makes choices tell from texts, in later records of the partition."""
    play.take(asked())
    copies = play.copies(answered({"owner": "Dana", "zone": "eu", "pin": 7, "x": True}))
    assert copies["metadata"]["data"]["answer"]["values"] == {"zone": "eu"}
    assert copies["full"]["data"]["answer"]["values"] == {
        "owner": "Dana", "zone": "eu", "pin": 7, "x": True,
    }  # fmt: skip


@pytest.mark.parametrize("change", [{"request": "q2"}, {"source": "urn:x"}, {"session": "s2"}])
def test_an_answer_to_something_else_is_read_without(play: Play, change: Tree) -> None:
    """Another request, source or session is not the one at hand."""
    play.take(asked())
    answer = answered({"zone": "eu", "flag": True}, request=change.pop("request", "q1")) | change
    outcome = play.take(answer)
    assert outcome.finding is not None
    assert outcome.finding.classification in ("orphan", "mismatched")
    assert outcome.finding.body is None
    copy = json.loads(by_topic(outcome)["metadata"].value or b"")
    assert copy["data"]["answer"]["values"] == {"flag": True}


def test_what_is_wrong_with_an_answer_is_told_and_routed(play: Play) -> None:
    """In the headers, the finding and the rule of the stream; the copy at full is untouched."""
    play.take(asked())
    answer = answered({"owner": "Dana", "zone": "elsewhere"})
    outcome = play.take(answer)
    assert outcome.finding is not None
    assert (outcome.finding.body, outcome.finding.classification) == ("body_answer", "matched")
    assert outcome.violation == "answer"
    full = by_topic(outcome)["full"]
    assert full.value == json.dumps(answer).encode()
    attributes = read_headers(full.headers)
    assert attributes is not None
    assert (attributes.body, attributes.stream) == ("body_answer", "answer")


def test_a_value_of_the_wrong_type_breaks_no_stream(play: Play) -> None:
    """It is a fault of the answer alone."""
    play.take(asked())
    outcome = play.take(answered({"owner": 3}))
    assert outcome.finding is not None
    assert (outcome.finding.body, outcome.violation) == ("body_answer", None)


def test_a_second_answer_is_told_from_the_first(play: Play) -> None:
    """The same again is a duplicate, another one conflicts; both are read with the form."""
    play.take(asked())
    results = []
    for seq, owner in ((9, "Dana"), (10, "Dana"), (11, "Kim")):
        outcome = play.take(answered({"owner": owner, "zone": "us"}, seq=seq))
        assert outcome.finding is not None
        results.append(outcome.finding.classification)
        copy = json.loads(by_topic(outcome)["metadata"].value or b"")
        assert copy["data"]["answer"]["values"] == {"zone": "us"}
    assert results == ["matched", "duplicate", "conflicting"]


def test_requests_survive_a_restart_and_streams_do_not(play: Play) -> None:
    """The changelog brings the form back; the rules of streams begin anew."""
    first = play.take(asked(seq=20))
    again = Play()
    again.offset = 5
    for output in first.outputs:
        if output.topic.endswith("pending.in"):
            again.memory.pending.restore(Change(output.key or b"", output.value))
    outcome = again.take(answered({"zone": "eu"}, seq=3, capture="redacted"))
    assert outcome.finding is not None
    assert outcome.finding.classification == "matched"
    assert outcome.violation == "answer"  # the owner is missing; the position is not late
    assert play.take(answered({"owner": "x"}, seq=3)).violation == "seq"


def test_no_prompt_and_no_label_is_kept_for_correlation(play: Play) -> None:
    """What the changelog holds of a request is its structure."""
    outcome = play.take(asked())
    (change,) = [output for output in outcome.outputs if output.topic.endswith("pending.in")]
    kept = msgspec.json.decode(change.value or b"", type=Entry).question.form or b""
    assert b'"eu"' in kept
    for text in (b"Who?", b"Owner", b"Frankfurt"):
        assert text not in kept


def test_everything_is_counted_from_zero(play: Play) -> None:
    """Excess, violations, answers, and the types that nobody registered."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, CONFIG, build.known_types(), "1")

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    assert {value("hookbus_stream_violations_total", rule=rule) for rule in RULES} == {0.0}
    assert value("hookbus_excess_data_total") == 0.0
    steps = [
        corpus.maximal("tool.completed") | {"capture": "metadata", "epoch": 0},
        corpus.envelope("progress.status", id="p2", seq=1),
        corpus.envelope("x.acme.thing.done", seq=30),
        asked(seq=31),
        answered({"zone": "nowhere", "pin": 3}, seq=32),
    ]
    for step in steps:
        metrics.router.routed([play.take(step)], ROUTES)
    assert value("hookbus_excess_data_total") == 1.0
    assert value("hookbus_stream_violations_total", rule="seq") == 1.0
    assert value("hookbus_stream_violations_total", rule="answer") == 1.0
    assert value("hookbus_events_total", type="other") == 1.0
    assert value("hookbus_events_total", type="attention.answered") == 1.0
    assert value("hookbus_elicitation_bodies_total", kind="result", body="body_answer") == 1.0
    assert value("hookbus_elicitation_results_total", result="matched") == 1.0
    assert value("hookbus_elicitation_withheld_total", why="credential") == 1.0


@pytest.fixture
def run(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, list[Tree]]]:
    """A command over lines: its exit code, and what it prints."""

    def command(lines: list[Any], *arguments: str) -> tuple[int, list[Tree]]:
        raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        file = tmp_path / "in.jsonl"
        file.write_bytes(b"".join(line + b"\n" for line in raw))
        code = main([*arguments, str(file)])
        return code, [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]

    return command


Run = Callable[..., tuple[int, list[Tree]]]


@needs_upstream
def test_check_accepts_the_golden_stream(run: Run) -> None:
    """All 64 lines, with the level of each."""
    code, told = run(golden(), "check")
    assert code == 0
    levels = [json.loads(line).get("capture", "metadata") for line in golden()]
    assert [verdict["capture"] for verdict in told] == levels
    assert {verdict["protocol"] for verdict in told} == {"aep"}


@needs_upstream
@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case["name"])
def test_check_refuses_the_invalid_streams(run: Run, case: Tree) -> None:
    """Each stream of the fixture, by name: its last event, with the code `stream`."""
    code, told = run(case["events"], "check")
    assert code == 1
    assert [verdict["ok"] for verdict in told] == [True] * (len(told) - 1) + [False]
    assert told[-1]["code"] == "stream"


@needs_upstream
def test_there_are_35_invalid_cases() -> None:
    """25 events, and 10 streams."""
    assert len(STREAMS) == 10
    assert len(cases("invalid/cases.json")) == 35
    assert FOLDER.is_dir()


def test_check_tells_an_answers_verdict(run: Run) -> None:
    """As it does for elicitations."""
    _, told = run([asked(), answered({"owner": 3}), answered({}, request="q9", seq=10)], "check")
    assert (told[1]["body"], told[1]["result"]) == ("body_answer", "matched")
    assert told[2]["result"] == "orphan"
    assert "body" not in told[0]
    assert "body" not in told[2]


def test_check_can_be_told_what_the_lines_are(run: Run) -> None:
    """Then lines of the other protocol are refused."""
    lines = [corpus.minimal("agent.idle"), events.minimal()["session.end"]]
    for named, oks in (("auto", [True, True]), ("ahp", [False, True]), ("aep", [True, False])):
        code, told = run(lines, "check", "--format", named)
        assert [verdict["ok"] for verdict in told] == oks
        assert code == (0 if all(oks) else 1)


def test_downlevel_reads_answers_with_the_requests_before_them(run: Run) -> None:
    """And copies of both protocols stand in one output."""
    answer = answered({"owner": "Dana", "zone": "eu"})
    lines = [answer, asked(), {**answer, "id": "a2", "seq": 10}, events.minimal()["session.end"]]
    code, copies = run(lines, "downlevel", "--capture", "metadata")
    assert code == 0
    assert copies[0]["data"]["answer"]["values"] == {}
    assert copies[2]["data"]["answer"]["values"] == {"zone": "eu"}
    assert copies[1]["data"]["prompt"] == "demo requests form"
    assert copies[3]["type"] == "session.end"


def test_an_event_that_breaks_its_stream_is_copied_all_the_same(run: Run) -> None:
    """`downlevel` does what the router does."""
    late = [corpus.envelope("progress.status", id=f"p{seq}", seq=seq) for seq in (2, 1)]
    assert run(late, "downlevel", "--capture", "full") == (0, late)
    assert run(late, "check")[0] == 1


def test_the_memory_of_a_partition_begins_empty() -> None:
    """Nothing is shared between two."""
    one, other = build.memory(CONFIG), build.memory(CONFIG)
    assert isinstance(one, Memory)
    assert one.pending is not other.pending
    assert one.streams is not other.streams
