"""What a redacted copy of an AHP event holds, over events of all types."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from agenthooksprotocol.lineage import TaskLineage
from agenthooksprotocol.runtime import Validator

from hookbus.policies.capture import FormNote, View
from hookbus.policies.levels import Grant
from hookbus.policies.redaction.redactor import Redactor, Settings
from hookbus.router.build import rewriter
from tests.corpus import events
from tests.corpus.secrets import HOME, LISTED, PERSONAL, SECRETS

SECRET = "[REDACTED:secret]"  # noqa: S105 - a token that replaces one
REDACTED = Grant("redacted", rewrite=True, redact=True)
METADATA = Grant("metadata", rewrite=True)
REDACTOR = Redactor(Settings(secrets=(LISTED,), home=HOME))
REWRITER = rewriter(REDACTOR)
OFFICIAL = Validator()
POOLS = {"max": events.maximal(), "min": events.minimal()}
CORPUS = {f"{name}-{kind}": event for name, pool in POOLS.items() for kind, event in pool.items()}
MAXIMAL = POOLS["max"]
ELICITED = {"user.elicitation.request": "request", "user.elicitation.result": "result"}
PLANTED = {**SECRETS, **PERSONAL}


def redact(event: Any, note: FormNote | None = None) -> Any:
    return REWRITER.copy(event, REDACTED, View(), note)


def planted(value: Any, text: str) -> Any:
    """The event with this text in every content position: where a text holds the canary."""
    if isinstance(value, dict):
        return {name: planted(member, text) for name, member in value.items()}
    if isinstance(value, list):
        made = [planted(member, text) for member in value]
        unique = all(isinstance(member, str) for member in made) and len(set(made)) < len(made)
        return [f"{member} {number}" for number, member in enumerate(made)] if unique else made
    if isinstance(value, str) and events.CANARY in value.lower():
        return value if "://" in value else f"so {text}"
    return value


def parts_of(value: Any) -> list[Any]:
    """All content parts in a value, in order."""
    if isinstance(value, list):
        return [part for member in value for part in parts_of(member)]
    if not isinstance(value, dict):
        return []
    if {"kind", "mediaType", "selection"} <= set(value):
        return [value]
    return [part for member in value.values() for part in parts_of(member)]


def outline(value: Any) -> Any:
    """What is left of a copy without sizes, and with its gaps in order of path."""
    if isinstance(value, dict):
        return {name: outline(member) for name, member in value.items() if name != "size"}
    if isinstance(value, list):
        made = [outline(member) for member in value]
        gaps = made and all(isinstance(one, dict) and "reason" in one for one in made)
        return sorted(made, key=lambda gap: str(gap.get("path"))) if gaps else made
    return value


@pytest.mark.parametrize("name", PLANTED)
def test_no_secret_survives_in_any_position_of_any_type(name: str) -> None:
    """Of every class, in texts, opaque JSON, paths, people, gaps, of events of every type, which
    stay valid for an official receiver."""
    text, gone = PLANTED[name]
    for kind, event in MAXIMAL.items():
        made = redact(planted(event, text))
        assert json.dumps(gone)[1:-1] not in json.dumps(made), kind
        OFFICIAL.validate("event", made)


@pytest.mark.parametrize("kind", MAXIMAL)
@pytest.mark.parametrize("name", ["password", "URL user", "card", "home", "listed"])
def test_no_secret_survives_on_the_way_to_metadata(kind: str, name: str) -> None:
    """And the way through redacted makes no difference, but for the sizes of what was redacted."""
    text, gone = PLANTED[name]
    event = planted(MAXIMAL[kind], text)
    below = REWRITER.copy(redact(event), METADATA, View(), None)
    assert gone not in json.dumps(below)
    straight = REWRITER.copy(event, METADATA, View(), None)
    if kind not in ELICITED:
        assert outline(below) == outline(straight)


@pytest.mark.parametrize("name", CORPUS)
class TestEveryType:
    def test_the_official_validator_accepts_the_copy(self, name: str) -> None:
        """An official receiver takes every copy."""
        OFFICIAL.validate("event", redact(CORPUS[name]))

    def test_redacting_a_copy_again_changes_nothing(self, name: str) -> None:
        """Member order included."""
        once = redact(CORPUS[name])
        assert json.dumps(redact(once)) == json.dumps(once)

    def test_the_identity_stays_and_the_level_is_declared(self, name: str) -> None:
        """Nothing foreign is among the extensions."""
        made = redact(CORPUS[name])
        for member in ("id", "source", "type", "time", "harness"):
            assert made[member] == CORPUS[name][member]
        assert made["extensions"] == {"dev.hookbus.capture": {"level": "redacted"}}

    def test_the_event_itself_is_left_as_it_was(self, name: str) -> None:
        """Copies at other levels are made from the same tree."""
        before = copy.deepcopy(CORPUS[name])
        redact(CORPUS[name])
        assert CORPUS[name] == before

    def test_parts_keep_their_ids_order_number_and_texts(self, name: str) -> None:
        """A text stays a body; what no pipeline reads becomes metadata, without a hash."""
        event = CORPUS[name]
        before, after = parts_of(event), parts_of(redact(event))
        if event["type"] == "user.elicitation.result" or "native" in event:
            before = [part for part in before if part["id"].startswith("part")]
            after = [part for part in after if part["id"].startswith("part")]
        assert [part["id"] for part in before] == [part["id"] for part in after]
        progress = event["type"] in ("turn.progress", "tool.progress")
        for one, other in zip(before, after, strict=True):
            assert "sha256" not in other
            assert "body" not in other
            if "text" in one and not progress and event["type"] not in ELICITED:
                assert other["text"] == one["text"]
                assert other["selection"] == "body"

    def test_unknown_members_are_not_in_the_copy(self, name: str) -> None:
        """What no schema names has gone, because nobody knows what it holds."""
        made = redact(CORPUS[name])
        assert "canaryMember" not in made
        assert "canarySession" not in made.get("session", {})


def test_a_receiver_that_keeps_state_accepts_the_copies_of_a_whole_corpus() -> None:
    """Nor do they where only what is redacted was changed."""
    lineage = TaskLineage(OFFICIAL)
    for name, event in CORPUS.items():
        lineage.accept(redact({**event, "source": f"urn:corpus:{name}"}))


@pytest.mark.parametrize(
    ("kind", "member", "change", "prior"),
    [
        ("task.change.after", "task", {"password": "one"}, {"password": "two"}),
        ("workspace.change.after", "workspace", {"cwd": "/home/al/x"}, {"cwd": "/home/bo/x"}),
    ],
)
def test_a_change_of_nothing_but_secrets_does_not_look_like_none(
    kind: str, member: str, change: Any, prior: Any
) -> None:
    """What was before goes, and a gap says so: receivers reject a change that changes nothing."""
    event = copy.deepcopy(MAXIMAL[kind])
    event[member] |= {"change": change, "prior": prior}
    made = redact(event)
    assert "prior" not in made[member]
    assert {"path": f"/{member}/prior", "reason": "withheld"} in made["gaps"]
    TaskLineage(OFFICIAL).accept(made)


def test_roots_that_become_equal_are_there_once() -> None:
    """A list that must be unique stays unique."""
    event = copy.deepcopy(MAXIMAL["workspace.change.before"])
    event["workspace"]["change"] = {"workspaceRoots": ["/home/al/x", "/home/bo/x", "/c"]}
    made = redact(event)
    assert made["workspace"]["change"]["workspaceRoots"] == ["~/x", "/c"]
    OFFICIAL.validate("event", made)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://mcp.example/mcp", "https://mcp.example/"),
        ("https://u:p@mcp.example:8443/mcp?token=abc", "https://mcp.example:8443/"),
        ("https://AK" + "IAEXAMPLE012345678/mcp", None),
    ],
)
def test_the_url_of_a_server_stays_a_url(url: str, expected: str | None) -> None:
    """Its origin, because a path may hold a credential; or it goes, with a gap."""
    event = copy.deepcopy(MAXIMAL["tool.after"])
    event["tool"]["mcp"]["connection"] = {"transport": "http", "url": url}
    made = redact(event)
    OFFICIAL.validate("event", made)
    assert made["tool"]["mcp"]["connection"].get("url") == expected


def test_a_secret_split_over_the_parts_of_a_message_goes() -> None:
    """Adjacent texts are read as one."""
    event = copy.deepcopy(MAXIMAL["user.message.inbound"])
    shell = {"kind": "text", "mediaType": "text/plain", "selection": "body"}
    texts = ["the key is sk-" + "ant-", "EXAMPLE03abcdef1234567890 ok"]
    parts = [{"id": f"p{number}", **shell, "text": text} for number, text in enumerate(texts)]
    event["message"]["messages"][0]["parts"] = parts
    made = redact(event)["message"]["messages"][0]["parts"]
    assert [part["text"] for part in made] == [f"the key is {SECRET}", f"{SECRET} ok"]


@pytest.mark.parametrize("final", [False, True])
def test_a_piece_of_a_message_is_not_redacted_by_itself(final: bool) -> None:
    """A secret may be split over pieces, the last one included: only their sizes are told."""
    event = copy.deepcopy(MAXIMAL["turn.progress"])
    event["final"] = final
    made = redact(event)
    assert made["delta"]["parts"][0]["selection"] == "metadata"
    assert parts_of(redact(MAXIMAL["tool.progress"])["partialOutput"])[0]["selection"] == "metadata"


@pytest.mark.parametrize("kind", ELICITED)
def test_a_body_that_nobody_judged_is_withheld(kind: str) -> None:
    """Like one that doesn't conform, which is also named in the gaps."""
    for note in (None, FormNote(None, "body_json", f"/elicitation/{ELICITED[kind]}")):
        made = redact(MAXIMAL[kind], note)
        assert made["elicitation"][ELICITED[kind]]["selection"] == "metadata"
        named = {"path": f"/elicitation/{ELICITED[kind]}", "reason": "body_json"}
        assert (named in made["gaps"]) == (note is not None)
