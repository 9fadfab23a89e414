"""What a copy below full holds, over events of all types."""

import copy
import json

import pytest
from agenthooksprotocol.lineage import TaskLineage
from agenthooksprotocol.runtime import ProtocolError, Validator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookbus.policies.capture import View
from hookbus.policies.levels import Grant
from hookbus.policies.plan import PLACEHOLDER
from hookbus.router.build import rewriter
from tests.corpus import events

LEVELS = ("none", "metadata")
REWRITER = rewriter()
OFFICIAL = Validator()
MAXIMAL = events.maximal()
MINIMAL = events.minimal()
TYPES = sorted(MAXIMAL)


def rewrite(event, level):
    return REWRITER.copy(event, Grant(level, rewrite=True), View(), None)


def corpus():
    return [(kind, event) for pool in (MAXIMAL, MINIMAL) for kind, event in sorted(pool.items())]


IDS = [
    f"{'max' if number < len(TYPES) else 'min'}-{kind}" for number, (kind, _) in enumerate(corpus())
]


def parts_of(value):
    """All content parts in a value, in order."""
    if isinstance(value, list):
        return [part for member in value for part in parts_of(member)]
    if not isinstance(value, dict):
        return []
    if {"kind", "mediaType", "selection"} <= set(value):
        return [value]
    return [part for member in value.values() for part in parts_of(member)]


def messages_of(value):
    """All messages in a value, as (id, role, number of parts), in order."""
    if isinstance(value, list):
        return [message for member in value for message in messages_of(member)]
    if not isinstance(value, dict):
        return []
    if {"id", "role", "parts"} <= set(value):
        return [(value["id"], value["role"], len(value["parts"]))]
    return [message for member in value.values() for message in messages_of(member)]


def withheld_whole(event):
    """The members that hold content parts and may go whole: they hold nothing but paths."""
    return {name: value for name, value in event.items() if name not in ("fileChanges", "native")}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("kind", "event"), corpus(), ids=IDS)
class TestEveryType:
    def test_no_content_survives(self, kind, event, level):
        """A canary stands in every content position, and in no copy."""
        assert events.CANARY not in json.dumps(rewrite(event, level)).lower()

    def test_the_official_validator_accepts_the_copy(self, kind, event, level):
        """An official receiver takes every copy."""
        OFFICIAL.validate("event", rewrite(event, level))

    def test_rewriting_a_copy_again_changes_nothing(self, kind, event, level):
        """A copy of a copy is the copy, member order included."""
        once = rewrite(event, level)
        assert json.dumps(rewrite(once, level)) == json.dumps(once)

    def test_the_way_down_makes_no_difference(self, kind, event, level):
        """Through metadata to a level is the same as straight to it."""
        by_metadata = rewrite(rewrite(event, "metadata"), level)
        assert by_metadata == rewrite(event, level)

    def test_the_identity_stays(self, kind, event, level):
        """A copy can be told to be of the same event."""
        made = rewrite(event, level)
        for name in ("id", "source", "type", "time", "harness"):
            assert made[name] == event[name]

    def test_the_event_itself_is_left_as_it_was(self, kind, event, level):
        """Copies at other levels are made from the same tree."""
        before = copy.deepcopy(event)
        rewrite(event, level)
        assert event == before

    def test_the_copy_declares_its_level(self, kind, event, level):
        """Whoever receives it knows what was done to it."""
        made = rewrite(event, level)
        assert made["extensions"] == {"dev.hookbus.capture": {"level": level}}


@pytest.mark.parametrize(("kind", "event"), corpus(), ids=IDS)
def test_messages_and_parts_keep_their_ids_order_and_number_at_metadata(kind, event):
    """A metadata copy has the shape of the conversation."""
    kept = withheld_whole(event)
    made = rewrite(event, "metadata")
    assert messages_of(made) == messages_of(kept)
    assert [part["id"] for part in parts_of(made)] == [part["id"] for part in parts_of(kept)]


@pytest.mark.parametrize(("kind", "event"), corpus(), ids=IDS)
def test_a_part_says_its_size_in_utf8_bytes_and_has_no_hash_at_metadata(kind, event):
    """The size of a text is structure; its hash could be guessed from."""
    before = {part["id"]: part for part in parts_of(withheld_whole(event))}
    for part in parts_of(rewrite(event, "metadata")):
        original = before[part["id"]]
        size = len(original["text"].encode()) if "text" in original else original.get("size")
        assert part.get("size") == size
        assert not {"sha256", "text", "body", "gap"} & set(part)
        assert part["selection"] == ("omit" if original["selection"] == "omit" else "metadata")


@pytest.mark.parametrize(("kind", "event"), corpus(), ids=IDS)
def test_nothing_optional_is_left_at_none(kind, event):
    """Without any of its members but the extensions, the least event is not valid any more."""
    made = rewrite(event, "none")
    for name in set(made) - {"extensions"}:
        rest = {key: value for key, value in made.items() if key != name}
        with pytest.raises(ProtocolError):
            OFFICIAL.validate("event", rest)


@pytest.mark.parametrize(("kind", "event"), corpus(), ids=IDS)
def test_what_goes_by_name_is_noted_in_the_gaps_at_metadata(kind, event):
    """Every gap that a copy adds points to a member that the event had and the copy has not, or has
    empty."""
    made = rewrite(event, "metadata")
    before = {gap["path"] for gap in event.get("gaps", ())}
    for gap in made.get("gaps", ()):
        if gap["reason"] == "withheld" and gap["path"] not in before:
            assert at(event, gap["path"]) is not None
            assert at(made, gap["path"]) in (None, {}, [], made["extensions"])


def at(value, pointer):
    for step in pointer.removeprefix("/").split("/"):
        if isinstance(value, list):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return None
    return "null" if value is None else value


@pytest.mark.parametrize("level", LEVELS)
def test_a_receiver_that_keeps_state_accepts_the_copies_of_a_whole_corpus(level):
    """No copy looks like a change that changes nothing, or reuses an identity (official lineage
    check)."""
    lineage = TaskLineage(OFFICIAL)
    for name, pool in (("maximal", MAXIMAL), ("minimal", MINIMAL)):
        for kind in TYPES:
            event = copy.deepcopy(pool[kind])
            event["source"] = f"urn:corpus:{name}:{kind}"
            lineage.accept(rewrite(event, level))


words = st.text(min_size=1).filter(lambda text: len(text.strip()) > 0)


@st.composite
def filled(draw):
    """A maximal event whose content texts are arbitrary, and these texts."""
    event = copy.deepcopy(MAXIMAL[draw(st.sampled_from(TYPES))])
    secrets = []

    def fill(value):
        if isinstance(value, dict):
            return {name: fill(member) for name, member in value.items()}
        if isinstance(value, list):
            return [fill(member) for member in value]
        if isinstance(value, str) and events.CANARY in value.lower() and "://" not in value:
            secret = f"⟦{draw(words)}⟧"
            secrets.append(secret)
            return secret
        return value

    return fill(event), secrets


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=200, deadline=None)
@given(filled(), st.sampled_from(LEVELS))
def test_no_text_survives_whatever_it_says(made, level):
    """Arbitrary texts in every content position leave no trace in a copy, which stays valid."""
    event, secrets = made
    rewritten = rewrite(event, level)
    OFFICIAL.validate("event", rewritten)
    text = json.dumps(rewritten, ensure_ascii=False)
    assert not [
        secret for secret in secrets if json.dumps(secret, ensure_ascii=False)[1:-1] in text
    ]


def test_required_texts_and_people_become_placeholders():
    """They can't be left out, so they say that they were withheld."""
    inbound = rewrite(MAXIMAL["user.message.inbound"], "metadata")
    assert inbound["message"]["sender"] == PLACEHOLDER
    assert inbound["message"]["channel"] == MAXIMAL["user.message.inbound"]["message"]["channel"]
    ended = rewrite(MAXIMAL["session.end"], "metadata")
    assert ended["reason"] == PLACEHOLDER


def test_a_hook_failure_keeps_what_its_audit_needs():
    """Backend, policy and parent stay; a reason stays if it is one of hookbus's own tokens."""
    event = copy.deepcopy(MINIMAL["hook.failure"])
    event["failure"]["reason"] = "connection_failed"
    made = rewrite(event, "metadata")
    assert made["failure"] == event["failure"]
    assert made["parentEventId"] == event["parentEventId"]
    event["failure"]["reason"] = "card 4111 declined"
    assert rewrite(event, "metadata")["failure"]["reason"] == PLACEHOLDER


def test_the_requesting_server_stays_and_its_form_does_not():
    """An elicitation's body is withheld; who asked is not."""
    for kind in ("user.elicitation.request", "user.elicitation.result"):
        event = MAXIMAL[kind]
        made = rewrite(event, "metadata")
        assert made["elicitation"]["server"] == event["elicitation"]["server"]
        assert made["elicitation"]["mode"] == event["elicitation"]["mode"]
        for part in parts_of(made["elicitation"]):
            assert part["selection"] != "body"
            assert "text" not in part
