"""What a configuration comes to, and what is refused before anything starts."""

import pytest

from hookbus.router import build
from hookbus.router.configuration import plan
from hookbus.router.configuration.config_file import parse
from tests.router.configuration.test_config_file import COMPLETE

TYPES = build.event_types()


def problems(text):
    return plan.problems(parse(text), TYPES)


def test_the_example_of_the_design_has_no_problems():
    """It is what the README shows."""
    assert problems(COMPLETE) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('kafka: {bootstrap_servers: "kafka:9092"}', "{}", None),
        ("topic: hookbus.review", "topic: agents.hooks", "routes.review.topic"),
        ("topic: hookbus.review", "topic: hookbus.failures", "routes.review.topic"),
        ("topic: hookbus.review", "topic: hookbus.dead", "routes.review.topic"),
        ("user.elicitation.*", "user.elicitaton.*", "did you mean user.elicitation.*?"),
        ("user.elicitation.*", "*", "routes.review.match.type"),
        ("match: {}", "match: {time: x}", "routes.siem.match.time"),
        ("match: {}", "match: {type: session.*, source: urn:*}", "routes.siem.match.source"),
        ("topics: [hookbus.siem]", "topics: [hookbus.seim]", "did you mean hookbus.siem?"),
        ("https://siem.example", "http://siem.example", "sinks.com.example.siem.http.url"),
        ("https://siem.example", "https://a:b@siem.example", "sinks.com.example.siem.http.url"),
        ("bearer: {env: SIEM_TOKEN}", "key_file: k", "sinks.com.example.siem.http.key_file: goes"),
        ("    http:", "    stdout: {}\n    http:", "exactly one of http, file, stdout and topic"),
        ("archive.jsonl", "journal.db", "named 2 times"),
        ("journal_only: [com.example.archive]", "journal_only: [com.exmple.archive]", "did you"),
        ("hookbus.failures]", "hookbus.review]", "sinks.com.example.siem: its failures"),
        ("  journal_only: [com.example.archive]\n", "", "sinks.com.example.archive: its failures"),
        ("dead_letters: {topic: hookbus.dead, capture: metadata}\n", "", "dead_letters: missing"),
        ("topics: [agents.hooks], capture: full", "topics: [hookbus.dead]", "ingress.agents"),
        ("127.0.0.1:9464", "127.0.0.1:metrics", "metrics.listen: expected host:port"),
        ("metrics:", "traces: {otlp: {endpoint: 'http://host:4318'}}\nmetrics:", "traces.otlp.end"),
        ("metrics:", "traces: {otlp: {endpoint: 'https://a:b@host'}}\nmetrics:", "user-info"),
        (
            "metrics:",
            "traces: {otlp: {endpoint: 'https://host', headers: {Host: {env: X}}}}\nmetrics:",
            "traces.otlp.headers: Host is set",
        ),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_work_is_refused_with_its_path(old, new, expected):
    """Each problem is found offline."""
    assert old in COMPLETE
    text = COMPLETE.replace(old, new)
    if expected is None:
        text = text.replace("  {}\n", "")
        expected = "bus: name exactly one of kafka and sqlite"
    assert any(expected in problem for problem in problems(text))


def test_exactly_once_is_for_both_buses():
    """Whether the broker has transactions shows at the start."""
    assert problems(COMPLETE.replace("at-least-once", "exactly-once")) == []


@pytest.mark.parametrize("domain", ["failure_domain: shared", "failure_domain: com.example.siem"])
def test_a_sink_of_the_same_failure_domain_is_no_witness(domain):
    """If the audit sink fails together with the sink, nobody would hear of it."""
    text = COMPLETE.replace("    file: {path", f"    {domain}\n    file: {{path").replace(
        "    timeout: 750ms", f"    timeout: 750ms\n    {domain}"
    )
    assert any("sinks.com.example.siem: its failures" in problem for problem in problems(text))


def test_a_topic_sink_may_not_feed_itself_or_the_router():
    """Records would go in circles."""
    for target in ("hookbus.siem", "agents.hooks", "hookbus.failures"):
        text = COMPLETE.replace("file: {path: /var/lib/hookbus/archive.jsonl}", f"topic: {target}")
        assert any("sinks.com.example.archive.topic" in problem for problem in problems(text))


def test_the_plan_says_where_each_sinks_failures_are_recorded():
    """The journal always; the topic and its audit sinks unless the sink is journal-only."""
    lines = {next(iter(line.values())): line for line in plan.describe(parse(COMPLETE))}
    assert lines["siem"] == {"route": "siem", "capture": "metadata", "topic": "hookbus.siem"}
    assert lines["review"]["full_becomes"] == "metadata"
    assert lines["com.example.siem"]["failures"] == {
        "journal": "/var/lib/hookbus/journal.db",
        "topic": "hookbus.failures",
        "audit_sinks": ["com.example.archive"],
    }
    assert lines["com.example.archive"]["failures"] == {
        "journal": "/var/lib/hookbus/journal.db",
        "journal_only": True,
    }
