"""What of another configuration a running service can go over to, and what it says of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookbus.router.configuration import referred
from hookbus.router.configuration.changes import Changes, compare, goes_on
from hookbus.router.configuration.config_file import parse

TEXT = """
bus: {sqlite: {path: bus.db}, create_topics: {partitions: 4}}
ingress: {agents: {topics: [in]}}
routes:
  siem: {topic: siem, match: {type: tool.before, source: "urn:a"}}
  tools: {topic: tools, capture: full}
sinks:
  archive: {topics: [siem], policy: fail-closed, file: {path: archive.jsonl}}
  backend:
    topics: [tools]
    policy: fail-open
    http: {url: "https://backend.example/", headers: {X-Key: geheim}, ca_file: ca.pem}
redaction: {secrets_file: listed}
failures: {topic: failures, journal: journal.db, journal_only: [archive]}
dead_letters: {topic: dead}
"""
OLD = parse(TEXT)


def changed(*edits: tuple[str, str]) -> Changes:
    """The changes that replacing each text by the other one makes."""
    text = TEXT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return compare(OLD, parse(text))


def test_nothing_differs_from_the_same_file() -> None:
    assert changed() == Changes((), ())


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("tool.before", "tool.after", "routes.siem.match"),
        (', source: "urn:a"', "", "routes.siem.match"),
        ("capture: full", "capture: metadata", "routes.tools.capture"),
        ("capture: full", "capture: full, content: {text: omit}", "routes.tools.content"),
        ("capture: full", "capture: redacted, redact: true", "routes.tools.redact"),
        ("topic: tools,", "topic: other,", "routes.tools.topic"),
        ("capture: full", "format: aep", "routes.tools.format"),
        ("  tools: {", "  other: {", "routes.tools (removed)"),
        ("  tools: {", "  other: {", "routes.other (added)"),
        ("  archive: {", "  other: {", "sinks.other (added)"),
        ("archive.jsonl", "other.jsonl", "sinks.archive.file.path"),
        ("geheim", "other", "sinks.backend.http.headers.X-Key"),
        ("secrets_file: listed", "secrets_file: other", "redaction.secrets_file"),
        ("[archive]", "[archive, backend]", "failures.journal_only"),
    ],
)
def test_routes_sinks_and_what_follows_from_them_may_change(old: str, new: str, path: str) -> None:
    found = changed((old, new))
    assert path in found.paths
    assert found.refused == ()


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("bus.db", "other.db", "bus.sqlite.path"),
        ("partitions: 4", "partitions: 5", "bus.create_topics.partitions"),
        ("topics: [in]", "topics: [in, more]", "ingress.agents.topics"),
        ("topics: [in]", "topics: [in], capture: metadata", "ingress.agents.capture"),
        ("agents:", "others:", "ingress.agents (removed)"),
        ("journal.db", "other.db", "failures.journal"),
        ("topic: failures", "topic: others", "failures.topic"),
        ("topic: dead", "topic: others", "dead_letters.topic"),
        ("dead_letters:", "metrics: {}\ndead_letters:", "metrics"),
        ("dead_letters:", "workers: 2\ndead_letters:", "workers"),
        ("dead_letters:", "limits: {max_depth: 9}\ndead_letters:", "limits.max_depth"),
        ("dead_letters:", "shutdown_grace: 9s\ndead_letters:", "shutdown_grace"),
    ],
)
def test_what_is_made_at_the_start_is_refused_with_its_path_and_the_reason(
    old: str, new: str, path: str
) -> None:
    (refused, *_) = changed((old, new)).refused
    assert refused.startswith(f"{path}: ")
    assert refused.endswith("; restart to change it")


def test_every_reason_is_named() -> None:
    refused = changed(
        ("bus.db", "other.db"), ("journal.db", "a.db"), ("archive.jsonl", "b")
    ).refused
    assert [line.partition(":")[0] for line in refused] == ["bus.sqlite.path", "failures.journal"]


def test_the_last_route_can_not_go() -> None:
    """Without routes the router would take events from the ingress and drop them."""
    start, end = TEXT.index("routes:"), TEXT.index("sinks:")
    found = compare(OLD, parse(TEXT[:start] + TEXT[end:]))
    assert found.refused == (
        "routes: the first one comes, and the last one goes, only with a restart",
    )


def test_no_value_is_shown() -> None:
    found = changed(("geheim", "verraten"), ("bus.db", "verraten.db"), ("urn:a", "urn:verraten"))
    assert "verraten" not in str(found)
    assert "geheim" not in str(found)


@pytest.mark.parametrize(
    ("old", "new", "stays"),
    [
        ("policy: fail-closed", "policy: fail-open", True),
        ("policy: fail-closed", "policy: fail-closed, timeout: 1s, deadline: 1s", True),
        ("policy: fail-closed", "policy: fail-closed, failure_domain: disk", True),
        ("topics: [siem]", "topics: [siem, failures]", False),
        ("archive.jsonl", "other.jsonl", False),
    ],
)
def test_a_sink_leaves_its_group_only_for_other_topics_or_another_backend(
    old: str, new: str, stays: bool
) -> None:
    config = parse(TEXT.replace(old, new))
    assert goes_on(OLD.sinks["archive"], config.sinks["archive"]) is stays


def test_another_content_of_a_file_is_a_change_although_the_configuration_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ca.pem", "listed"):
        Path(name).write_text("one")
    before = referred.contents(OLD)
    assert referred.differences(before, referred.contents(OLD)) == []
    Path("ca.pem").write_text("other")
    after = referred.contents(OLD)
    assert referred.differences(before, after) == ["sinks.backend.http.ca_file (content)"]
    assert referred.of_sink("archive", before) == referred.of_sink("archive", after)
    assert referred.of_sink("backend", before) != referred.of_sink("backend", after)


def test_a_file_that_is_gone_is_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("listed").write_text("one")
    before = referred.contents(OLD)
    Path("listed").unlink()
    differences = referred.differences(before, referred.contents(OLD))
    assert differences == ["redaction.secrets_file (content)"]
