"""Reading a configuration: every problem is named, none quotes a secret."""

import json

import fastjsonschema
import pytest
from ruamel.yaml import YAML

from hookbus.router.configuration.config_file import json_schema, parse
from hookbus.router.errors import ConfigError

COMPLETE = """
bus:
  kafka: {bootstrap_servers: "kafka:9092"}
  delivery: at-least-once
  create_topics: {partitions: 4, replication: 1}
ingress:
  agents: {topics: [agents.hooks], capture: full}
routes:
  siem:    {match: {}, capture: metadata, topic: hookbus.siem}
  review:  {match: {type: ["user.elicitation.*"]}, capture: redacted, topic: hookbus.review}
sinks:
  com.example.siem:
    topics: [hookbus.siem]
    http: {url: "https://siem.example/hooks", bearer: {env: SIEM_TOKEN}}
    timeout: 750ms
    policy: fail-closed
  com.example.archive:
    topics: [hookbus.siem, hookbus.failures]
    file: {path: /var/lib/hookbus/archive.jsonl}
    policy: fail-closed
failures:
  topic: hookbus.failures
  journal: /var/lib/hookbus/journal.db
  journal_only: [com.example.archive]
dead_letters: {topic: hookbus.dead, capture: metadata}
metrics: {listen: "127.0.0.1:9464"}
"""


def problems(text):
    with pytest.raises(ConfigError) as raised:
        parse(text)
    return raised.value.problems


def test_a_complete_configuration_is_read_with_its_units():
    """Durations are seconds, sizes are bytes, a route without capture is a metadata route."""
    config = parse(COMPLETE + "limits: {max_bytes: 64KiB}\nshutdown_grace: 1.5m\n")
    assert config.sinks["com.example.siem"].timeout == 0.75
    assert config.limits.max_bytes == 65536
    assert config.shutdown_grace == 90
    assert parse("bus: {}\nroutes: {r: {topic: t}}").routes["r"].capture == "metadata"


def test_all_problems_are_named_at_once():
    """An operator corrects a file in one go."""
    found = problems("""
bus: {kafka: {bootstrap_server: "kafka:9092"}, delivery: at-most-once}
rotues: {}
routes: {dash: {topic: t, capture: Full, match: []}}
sinks: {s: {topics: [], policy: fail, timeout: 5, file: {path: f, rotate: 10 apples}}}
""")
    assert len(found) == 10
    for path in (
        "rotues: unknown key; did you mean routes?",
        "bus.kafka.bootstrap_server: unknown key; did you mean bootstrap_servers?",
        "bus.kafka.bootstrap_servers: missing",
        "bus.delivery: must be one of",
        "routes.dash.capture: must be one of",
        "routes.dash.match: ",
        "sinks.s.topics: ",
        "sinks.s.policy: must be one of",
        "sinks.s.timeout: expected a duration such as 750ms",
        "sinks.s.file.rotate: expected a size such as 512B",
    ):
        assert any(problem.startswith(path) for problem in found), path


@pytest.mark.parametrize(
    ("bearer", "problem"),
    [
        ("hunter2", "expected a mapping"),
        ("{env: A, file: B}", "exactly one of env and file"),
        ("{}", "exactly one of env and file"),
        ("{value: hunter2}", "unknown key"),
        ("[hunter2]", "expected a mapping"),
    ],
)
def test_a_secret_is_a_reference_and_is_never_quoted(bearer, problem):
    """A literal in its place is refused without being shown."""
    found = problems(COMPLETE.replace("{env: SIEM_TOKEN}", bearer))
    assert any(problem in text for text in found)
    assert "hunter2" not in "\n".join(found)


@pytest.mark.parametrize("sample", ["-0.1", "1.1", "half", "true"])
def test_a_share_is_a_number_from_0_to_1(sample):
    """Of traces, what is kept."""
    section = "traces: {otlp: {endpoint: 'https://host', sample: SAMPLE}}"
    (problem,) = problems(f"{COMPLETE}\n{section.replace('SAMPLE', sample)}\n")
    assert problem.startswith("traces.otlp.sample: ")
    assert parse(f"{COMPLETE}\n{section.replace('SAMPLE', '1')}\n").traces.otlp.sample == 1


def test_a_duplicate_key_is_refused_without_its_value():
    """YAML parsers that keep the last one hide a mistake; the values may be secrets."""
    (problem,) = problems("bus: {}\nmetrics: hunter1\nmetrics: hunter2\n")
    assert problem.startswith("line 3, column 1: found duplicate key")
    assert "hunter" not in problem


@pytest.mark.parametrize(
    "text", ["", "[]", "bus", "bus: [1", "a: b: c", "\t", "bus: !!python/object:os.system x"]
)
def test_what_is_no_configuration_is_refused(text):
    """Nothing that a file holds raises anything but a ConfigError."""
    assert problems(text)


def test_the_schema_for_editors_accepts_what_is_accepted():
    """The printed JSON Schema is made from the same Structs."""
    schema = json_schema()
    json.dumps(schema)
    references = {**schema, "$schema": "http://json-schema.org/draft-07/schema#"}
    validate = fastjsonschema.compile(references, use_formats=False)
    tree = json.loads(json.dumps(YAML(typ="safe", pure=True).load(COMPLETE)))
    validate(tree)
    tree["rotues"] = {}
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate(tree)


def test_the_patterns_of_the_schema_mean_the_same_to_an_editor():
    """They end where the text does, in Python and in JavaScript, which has no `\\Z`."""
    assert "\\Z" not in json.dumps(json_schema())
    for name in ("siem\n", "", "a b", "x" * 250):
        (found,) = problems(COMPLETE.replace("topic: hookbus.review", f"topic: {json.dumps(name)}"))
        assert found.startswith("routes.review.topic: ")
