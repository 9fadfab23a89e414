"""Routes that redact: what they write and refuse, and what happens when the pipeline fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agenthooksprotocol.runtime import Validator
from prometheus_client import CollectorRegistry

from hookbus.codecs.aep_stream import Streams
from hookbus.policies.correlation import PendingRequests
from hookbus.policies.redaction.redactor import Redactor, Settings
from hookbus.router import build
from hookbus.router.cli import main
from hookbus.router.configuration import plan
from hookbus.router.configuration.config import Config
from hookbus.router.configuration.config_file import parse
from hookbus.router.errors import ConfigError, StartupError
from hookbus.router.memory import Memory
from hookbus.router.pipeline import Pipeline
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.types import Record
from tests.corpus import elicitations, events
from tests.corpus.secrets import LISTED, SECRETS

SECRET = "[REDACTED:secret]"  # noqa: S105 - a token that replaces one
TEXT = """
bus: {sqlite: {path: bus.db}}
ingress: {agents: {topics: [in]}}
routes:
  review: {topic: review, capture: redacted, redact: true}
  same: {topic: same, capture: redacted, redact: true}
  plain: {topic: plain, capture: redacted}
  whole: {topic: whole, capture: full}
dead_letters: {topic: dead}
"""
OFFICIAL = Validator()


def pipeline(redactor: Any = None) -> Pipeline:
    """The pipeline of the configuration, or one with another redactor."""
    config = parse(TEXT)
    if redactor is None:
        return build.pipeline(config, build.decoder(config))
    return Pipeline(
        build.decoder(config),
        build.correlator(),
        build.copier(redactor),
        build.formatter(),
        tuple(build.route_plan(name, route) for name, route in config.routes.items()),
        build.office(config),
        levels={"in": "full"},
        changelogs={"in": "changelog"},
        failures_topic=None,
        largest=1_000_000,
    )


ITS_OWN = pipeline()
LISTING = pipeline(Redactor(Settings(secrets=(LISTED,))))


class Play:
    """Events taken one after another by one partition."""

    def __init__(self, made: Pipeline | None = None) -> None:
        self.pipeline = made or ITS_OWN
        self.memory = Memory(
            PendingRequests(most=100, most_answered=100, redelivered=0, age=86_400_000),
            Streams(100),
        )
        self.offset = 0

    def take(self, event: Any) -> dict[str, Any]:
        """Topic -> the copy there."""
        raw = json.dumps(event).encode()
        self.outcome = self.pipeline.step(
            Record("in", 0, self.offset, self.offset * 1000, None, raw), self.memory
        )
        self.offset += 1
        assert self.outcome.refusal is None
        self.headers = {out.topic: dict(out.headers) for out in self.outcome.outputs}
        return {
            out.topic: json.loads(out.value)
            for out in self.outcome.outputs
            if out.value is not None
        }


def level_of(copy: Any) -> str:
    level: str = copy["extensions"]["dev.hookbus.capture"]["level"]
    return level


def test_a_route_that_redacts_makes_redacted_from_full() -> None:
    """One that doesn't makes metadata; both say so, and a shared copy is made once."""
    play = Play()
    copies = play.take(events.maximal()["tool.before"])
    assert level_of(copies["review"]) == "redacted"
    assert level_of(copies["plain"]) == "metadata"
    outputs = {out.topic: out.value for out in play.outcome.outputs}
    assert outputs["review"] is outputs["same"]
    assert play.headers["review"]["hookbus-capture"] == b"redacted"


def test_a_redacted_event_passes_a_route_that_redacts_byte_for_byte() -> None:
    """Its emitter answers for it."""
    event = events.maximal()["tool.before"]
    event["extensions"]["dev.hookbus.capture"] = {"level": "redacted"}
    assert Play().take(event)["review"] == event


PROPERTIES = {
    "approver": {"type": "string", "title": "Ask bob@x.example", "default": "token=hunter2x"},
    "mail": {"type": "string", "format": "email"},
    "due": {"type": "string", "format": "date"},
    "amount": {"type": "number", "minimum": 0, "default": 4111111111111111},
    "urgent": {"type": "boolean"},
    "zone": {"type": "string", "enum": ["eu", "us"], "enumNames": ["/home/al/x", "Ohio"]},
    "tier": {"type": "string", "oneOf": [{"const": "low", "title": "password=hunter2x"}]},
    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
    "password": {"type": "string", "default": "hunter2x"},
    "pin": {"type": "integer", "default": 4711},
    "note": {"type": "string", "title": "API token"},
}
ANSWERS = {
    "approver": "Bob, https://app.example/cb?access_token=hunter2x",
    "mail": "bob@x.example",
    "due": "2026-11-30",
    "amount": 4111111111111111,
    "urgent": True,
    "zone": "eu",
    "tier": "low",
    "tags": ["a"],
    "password": "hunter2x",
    "pin": 4711,
    "note": "hunter2x",
    "extra": "hunter2x",
}


def asked(body: Any, **elicitation: Any) -> Any:
    return _event("request", body, 0, mode="form", **elicitation)


def told(body: Any, **elicitation: Any) -> Any:
    made = _event("result", body, 1, **{"mode": "form", "action": "accept", **elicitation})
    return {**made, "parentEventId": "e0"}


def _event(kind: str, body: Any, number: int, **elicitation: Any) -> Any:
    part = {
        "id": f"p{number}", "kind": "text", "mediaType": "text/plain", "selection": "body",
        "text": json.dumps(body),
    }  # fmt: skip
    return {
        "id": f"e{number}", "source": "urn:agent:1", "type": f"user.elicitation.{kind}",
        "time": f"2026-11-29T10:{number:02}:00Z", "harness": {"name": "h", "version": "1"},
        "session": {"id": "s1"}, "elicitation": {"server": "deployer", **elicitation, kind: part},
    }  # fmt: skip


def body_of(copy: Any, kind: str) -> Any:
    text = copy["elicitation"][kind]["text"]
    body = json.loads(text)
    OFFICIAL.validate(f"mcp-elicitation#{kind}", body)
    OFFICIAL.validate("event", copy)
    return body


def form(properties: Any = PROPERTIES) -> Any:
    body = elicitations.form(properties, ["amount"])
    return {**body, "message": "Who? password: hunter2x", "_meta": {"note": "hunter2x"}}


def test_the_body_of_a_form_is_redacted_as_the_tree_that_it_is() -> None:
    """Texts that a person reads go through the pipeline; keys, types, bounds and choices stay, and
    a field that is named password stays a field."""
    made = body_of(Play().take(asked(form()))["review"], "request")
    assert set(made) == {"message", "requestedSchema"}
    assert made["message"] == f"Who? password: {SECRET}"
    fields = made["requestedSchema"]["properties"]
    assert list(fields) == list(PROPERTIES)
    assert {key: field["type"] for key, field in fields.items()} == {
        key: field["type"] for key, field in PROPERTIES.items()
    }
    assert fields["approver"] == {
        "type": "string", "title": "Ask [REDACTED:pii]", "default": f"token={SECRET}"
    }  # fmt: skip
    assert fields["zone"]["enum"] == ["eu", "us"]
    assert fields["zone"]["enumNames"] == ["~/x", "Ohio"]
    assert fields["tier"]["oneOf"] == [{"const": "low", "title": f"password={SECRET}"}]
    assert fields["tags"]["default"] == ["a"]
    for key in ("password", "pin", "amount"):
        assert "default" not in fields[key]
    assert "hunter2x" not in json.dumps(made)


def test_answers_are_redacted_by_the_form_that_they_answer() -> None:
    """Choices, booleans, numbers stay; texts go through the pipeline; an answer to a field that
    asks for a credential doesn't stay, nor one to nothing that was asked."""
    play = Play()
    play.take(asked(form({**PROPERTIES, "amount": {"type": "number"}})))
    made = body_of(
        play.take(told({"action": "accept", "content": ANSWERS, "x": 1}))["review"], "result"
    )
    assert made == {
        "action": "accept",
        "content": {
            "approver": f"Bob, https://app.example/cb?access_token={SECRET}",
            "due": "2026-11-30",
            "urgent": True,
            "zone": "eu",
            "tier": "low",
            "tags": ["a"],
            "password": SECRET,
            "note": SECRET,
        },
    }


def test_an_orphan_keeps_its_structure_and_no_text() -> None:
    """Nothing says what was asked."""
    content = {"name": "Bob", "tags": ["a"], "n": 5.0, "b": True, "pin": 1, "c": 4111111111111111}
    made = body_of(Play().take(told({"action": "accept", "content": content}))["review"], "result")
    kept = {"name": "[withheld]", "tags": ["[withheld]"], "n": 5.0, "b": True}
    assert made == {"action": "accept", "content": kept}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_content_that_nobody_agreed_to_share_is_in_no_redacted_copy(action: str) -> None:
    """The body that came with it is withheld whole."""
    play = Play()
    play.take(asked(form()))
    copy = play.take(told({"action": action, "content": ANSWERS}, action=action))["review"]
    assert "text" not in copy["elicitation"]["result"]
    assert "hunter2x" not in json.dumps(copy)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://u:p@login.example:8443/a/b?code=hunter2x#x", "https://login.example:8443/"),
        ("https://[::1]/a", "https://[::1]/"),
        ("urn:x:hunter2x", "about:withheld"),
        ("mailto:bob@x.example", "about:withheld"),
    ],
)
def test_the_url_of_an_elicitation_is_cut_to_its_origin(url: str, expected: str) -> None:
    """Where to, and not with what."""
    body = {"mode": "url", "message": "Go to /home/al", "url": url, "elicitationId": "1", "x": 1}
    event = asked(body)
    event["elicitation"]["mode"] = "url"
    made = body_of(Play().take(event)["review"], "request")
    assert made == {"mode": "url", "elicitationId": "1", "message": "Go to ~", "url": expected}


@pytest.mark.parametrize("body", elicitations.requests())
def test_every_kind_of_request_stays_one(body: Any) -> None:
    """For an official receiver."""
    event = asked(body)
    event["elicitation"]["mode"] = body.get("mode", "form")
    body_of(Play().take(event)["review"], "request")


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_survives_in_any_text_of_a_form_or_its_answer(name: str) -> None:
    """In messages, titles, descriptions, labels, defaults and answers."""
    text, gone = SECRETS[name]
    field = {"type": "string", "title": text, "description": text, "default": text}
    choice = {"type": "string", "oneOf": [{"const": "r", "title": text}]}
    named = {"type": "string", "enum": ["r"], "enumNames": [text]}
    many = {"type": "array", "items": {"anyOf": [{"const": "r", "title": text}]}}
    play = Play(LISTING)
    request = elicitations.form({"a": field, "b": choice, "c": named, "d": many})
    copy = play.take(asked({**request, "message": text}))["review"]
    body_of(copy, "request")
    assert json.dumps(json.dumps(gone)[1:-1])[1:-1] not in json.dumps(copy)
    copy = play.take(told({"action": "accept", "content": {"a": text, "z": text}}))["review"]
    assert list(body_of(copy, "result")["content"]) == ["a"]
    assert json.dumps(json.dumps(gone)[1:-1])[1:-1] not in json.dumps(copy)


class Choking(Redactor):
    """A redactor that can't take one text."""

    def text(self, text: str) -> str:
        if "choke" in text:
            raise RuntimeError(text)
        return super().text(text)


def test_what_cannot_be_redacted_is_written_as_metadata_and_counted() -> None:
    """For this event and the routes that redact; others don't notice."""
    made = pipeline(Choking(Settings()))
    config = parse(TEXT)
    registry = CollectorRegistry()
    metrics = Metrics(registry, config, build.known_types(), "0")
    play = Play(made)

    def errors(route: str) -> float | None:
        return registry.get_sample_value("hookbus_redaction_errors_total", {"route": route})

    assert errors("review") == errors("whole") == 0
    for command in ("one", "choke on bob@x.example", "three"):
        event = events.minimal()["tool.before"]
        event["tool"]["input"] = {"command": command}
        copies = play.take(event)
        metrics.router.routed([play.outcome], config.routes)
        assert copies["whole"] == event
        assert level_of(copies["review"]) == ("metadata" if "choke" in command else "redacted")
        assert copies["review"]["tool"]["input"] == (
            {} if "choke" in command else {"command": command}
        )
    assert play.outcome.unredacted == ()
    assert errors("review") == errors("same") == 1
    assert errors("plain") == errors("whole") == 0


def test_aep_events_are_redacted_too() -> None:
    """Data at full become redacted data."""
    event = {
        "aep": "0.1", "id": "01B", "type": "run.started", "time": "2026-08-24T08:51:14Z",
        "source": "aep://host-1/agent/demo/session/s1", "agent": "demo", "session": "s1",
        "run": "r1", "seq": 9, "capture": "full",
        "data": {"trigger": "user", "prompt": "token=hunter2x for bob@x.example"},
    }  # fmt: skip
    made = Play().take(event)["review"]
    assert made["capture"] == "redacted"
    assert made["data"]["prompt"] == f"token={SECRET} for [REDACTED:pii]"
    event["data"]["prompt"] = "choke"
    made = Play(pipeline(Choking(Settings()))).take(event)["review"]
    assert made["capture"] == "metadata"
    assert "prompt" not in made["data"]


def config(routes: str, section: str = "") -> Config:
    return parse(
        "bus: {sqlite: {path: bus.db}}\ningress: {agents: {topics: [in]}}\n"
        f"dead_letters: {{topic: dead}}\nroutes:\n  r: {routes}\n{section}"
    )


@pytest.mark.parametrize("level", ["none", "metadata", "full"])
def test_redact_goes_with_capture_redacted_only(level: str) -> None:
    """Anything else is a problem of the configuration."""
    found = plan.problems(
        config(f"{{topic: t, redact: true, capture: {level}}}"), build.known_types()
    )
    assert found == ["routes.r.redact: goes with capture redacted"]


def test_secrets_come_from_references_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every one of them is looked for."""
    monkeypatch.setenv("REDACTED_ONE", "plainsecretone")
    (tmp_path / "two").write_text("plainsecrettwo\n")
    (tmp_path / "more").write_text("plainsecretthree\n\nplainsecretfour\n")
    section = (
        f"redaction: {{secrets: [{{env: REDACTED_ONE}}, {{file: {tmp_path}/two}}],"
        f" secrets_file: {tmp_path}/more, home: /srv/al, pii: false}}"
    )
    loaded = config("{topic: t, redact: true, capture: redacted}", section)
    play = Play(build.pipeline(loaded, build.decoder(loaded)))
    event = events.minimal()["session.end"]
    event["reason"] = (
        "plainsecretone plainsecrettwo plainsecretthree plainsecretfour /srv/al/x a@b.co"
    )
    assert play.take(event)["t"]["reason"] == f"{SECRET} {SECRET} {SECRET} {SECRET} ~/x a@b.co"


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ("redaction: {secrets_file: /nowhere/file}", "redaction.secrets_file: file /nowhere/file"),
        ("redaction: {secrets: [{file: /nowhere/x}]}", "redaction.secrets[0]: file /nowhere/x"),
        ("redaction: {secrets: [{env: HOOKBUS_NOT_SET}]}", "redaction.secrets[0]: environment"),
    ],
)
def test_a_secret_that_cannot_be_read_stops_the_start(section: str, named: str) -> None:
    """Of a configuration with a route that redacts, and of no other."""
    loaded = config("{topic: t, redact: true, capture: redacted}", section)
    with pytest.raises(StartupError, match="can't be read") as caught:
        build.pipeline(loaded, build.decoder(loaded))
    assert named in str(caught.value)
    without = config("{topic: t, capture: redacted}", section)
    build.pipeline(without, build.decoder(without))


def test_a_literal_secret_is_no_configuration() -> None:
    """Secrets are references."""
    with pytest.raises(ConfigError) as caught:
        config("{topic: t}", "redaction: {secrets: [plainsecret]}")
    assert "plainsecret" not in str(caught.value)


def run(lines: list[Any], path: Path, capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    file = path / "input.jsonl"
    file.write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    )
    code = main([*args, str(file)])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


def test_redact_reads_one_value_a_line_and_refuses_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused line goes to stderr as a verdict that quotes nothing."""
    listed = tmp_path / "secrets"
    listed.write_text("plainsecret\n")
    lines = [{"a": "plainsecret /srv/al/x a@b.co"}, '{"hunter2": ', '{"a":1,"a":2}', '"a@b.co"']
    options = ("--home", "/srv/al", "--secrets-file", str(listed))
    code, out, err = run(lines, tmp_path, capsys, "redact", *options)
    assert (code, out) == (1, [{"a": f"{SECRET} ~/x [REDACTED:pii]"}, "[REDACTED:pii]"])
    verdicts = [json.loads(line) for line in err.splitlines()]
    assert [(told["line"], told["code"]) for told in verdicts] == [
        (2, "invalid_json"), (3, "duplicate_key")
    ]  # fmt: skip
    assert "hunter2" not in err
    assert run(['"a@b.co"'], tmp_path, capsys, "redact", "--no-pii") == (0, ["a@b.co"], "")
    assert run([], tmp_path, capsys, "redact", "--secrets-file", "/nowhere")[0] == 2


def test_redact_says_how_many_listed_values_are_too_short_to_be_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, without a word of them; blank lines are none."""
    listed = tmp_path / "secrets"
    listed.write_text("pin\n\nqx\nplainsecret\n")
    code, out, err = run(
        ['"pin plainsecret"'], tmp_path, capsys, "redact", "--secrets-file", str(listed)
    )
    assert (code, out) == (0, [f"pin {SECRET}"])
    assert json.loads(err) == {"short_secrets_ignored": 2, "shortest": 4}


def test_downlevel_redacts_as_a_route_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Correlating within the input."""
    lines = [asked(form()), told({"action": "accept", "content": ANSWERS})]
    play = Play()
    expected = [play.take(line)["review"] for line in lines]
    options = ("--capture", "redacted", "--redact")
    assert run(lines, tmp_path, capsys, "downlevel", *options) == (0, expected, "")
    assert run(lines, tmp_path, capsys, "downlevel", "--capture", "full", "--redact")[0] == 2
