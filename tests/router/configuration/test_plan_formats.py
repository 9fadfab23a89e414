"""What a route can't say in its format is a problem before anything starts."""

import pytest

from hookbus.router import build
from hookbus.router.configuration import plan
from hookbus.router.configuration.config_file import parse

TYPES = build.event_types()
CONFIG = """
bus: {sqlite: {path: bus.db}}
ingress: {agents: {topics: [in]}}
routes:
  wanted: {topic: out, format: FORMAT, match: MATCH}
sinks:
  com.example.file: {topics: [out, failures], file: {path: out.jsonl}, policy: fail-open}
  SINK
failures: {topic: failures, journal: journal.db, journal_only: [com.example.file]}
dead_letters: {topic: dead}
"""
HTTP = "com.example.web: {topics: [out], http: {url: 'https://a.example/'}, policy: fail-open}"


def problems(form, match, sink=""):
    text = CONFIG.replace("FORMAT", form).replace("MATCH", match).replace("SINK", sink)
    return plan.problems(parse(text), TYPES)


@pytest.mark.parametrize(
    ("form", "match"),
    [
        ("aep", "{type: [session.*, turn.start, turn.end, tool.before, tool.after]}"),
        ("aep", "{type: [user.elicitation.*, user.attention]}"),
        ("aep", "{type: [run.*, attention.*, x.acme.*]}"),
        ("ahp", "{}"),
        ("ahp", "{type: [tool.*, user.elicitation.*, attention.*]}"),
        ("cloudevents", "{}"),
    ],
)
def test_a_route_that_says_all_that_it_matches_has_no_problem(form, match):
    """Types of the format's own protocol need no counterpart."""
    assert problems(form, match) == []


@pytest.mark.parametrize(
    ("form", "match", "named"),
    [
        ("aep", "{type: tool.*}", ["tool.progress", "batch.after", "name tool.before, tool.a"]),
        ("aep", "{type: [turn.progress, session.*]}", ["counterpart of turn.progress; name sess"]),
        ("aep", "{type: hook.failure}", ["AEP has no counterpart of hook.failure"]),
        ("aep", "{}", ["missing", "user.elicitation.result"]),
        ("aep", "{source: 'urn:a'}", ["missing"]),
        ("ahp", "{type: run.started}", ["AHP has no counterpart of run.started"]),
        ("ahp", "{type: [tool.*, control.*]}", ["AHP has no counterpart of control.*"]),
    ],
)  # fmt: skip
def test_a_type_that_a_format_cannot_say_is_named(form, match, named):
    """With the types to name instead."""
    (problem,) = problems(form, match)
    assert problem.startswith("routes.wanted.match.type: ")
    assert all(each in problem for each in named)


@pytest.mark.parametrize("form", ["aep", "cloudevents"])
def test_an_http_backend_takes_no_other_format(form):
    """It speaks AHP."""
    (problem,) = problems(form, "{type: session.*}", HTTP)
    assert problem.startswith("sinks.com.example.web.topics: route wanted writes out in format ")
    assert problems("ahp", "{type: session.*}", HTTP) == []


def test_an_unknown_format_is_refused_with_its_path():
    """The file is read strictly."""
    with pytest.raises(Exception, match=r"routes\.wanted\.format"):
        problems("xml", "{}")


def test_the_plan_shows_the_format():
    """Beside the level and the topic."""
    text = CONFIG.replace("FORMAT", "aep").replace("MATCH", "{type: session.*}")
    line = next(plan.describe(parse(text.replace("SINK", ""))))
    assert line["format"] == "aep"
