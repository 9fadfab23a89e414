"""What a copy of an AEP event holds, over events of all 46 types and of types nobody registered."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookbus.codecs.aep_attention import read_attention
from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.strict import encode
from hookbus.policies.aep_capture import without_digests
from hookbus.policies.aep_values import gate_values
from hookbus.policies.capture import View
from hookbus.policies.copies import Context
from hookbus.policies.levels import LEVELS
from hookbus.router.build import copier
from tests.corpus import aep_events as corpus
from tests.upstream import cases, needs_upstream

_COPIER = copier()
_DECODER = Decoder()
_BELOW = {"none": "needs-", "metadata": "needs-", "redacted": "needs-full", "full": "nothing"}
_UNREGISTERED = ("progress.x", "x.acme.session.changed", "agent.x")

Tree = dict[str, Any]


def made(event: Tree, ceiling: str, *, form: Any = None, digests: bool = True) -> bytes:
    """What a route with this ceiling writes."""
    raw = encode(event)
    decoded = _DECODER.decode(raw)
    assert isinstance(decoded, Event), decoded
    copies = _COPIER.of(decoded, Context(form=form))
    tree = copies.copy(copies.grant(ceiling), View(digests=digests))
    return raw if tree is None else encode(tree)


def lowered(event: Tree, ceiling: str, **more: Any) -> Tree:
    tree: Tree = json.loads(made(event, ceiling, **more))
    return tree


def at_level(event: Tree, level: str) -> Tree:
    """A `full` event as its emitter could have written it at `level`."""
    raw = encode({**event, "capture": level})
    decoded = _DECODER.decode(raw)
    assert isinstance(decoded, Event)
    return _COPIER.aep.admit(decoded.tree).tree


def tells(value: Any, what: str) -> bool:
    return what in json.dumps(value)


def members(value: Any) -> list[Any]:
    """Every member name and every leaf, in order."""
    if isinstance(value, dict):
        return [x for name, member in value.items() for x in (name, *members(member))]
    if isinstance(value, list):
        return [x for member in value for x in members(member)]
    return [value]


@pytest.mark.parametrize("kind", corpus.TYPES)
class TestEveryType:
    def test_nothing_above_a_level_survives_it(self, kind: str) -> None:
        """Every text that needs more than the copy's level is gone, and starred fields say less."""
        for level, ceiling in itertools.product(LEVELS, LEVELS):
            tree = lowered({**corpus.maximal(kind), "capture": level}, ceiling)
            honoured = tree["capture"]
            assert not tells(tree, _BELOW[honoured])
            if honoured != level:
                assert not tells(tree, "starred")
            held = kind not in corpus.UNMAPPED or honoured == level
            assert ("data" in tree) == (honoured != "none" and held)

    @pytest.mark.parametrize("ceiling", LEVELS)
    def test_a_copy_is_valid_and_keeps_every_attribute(self, kind: str, ceiling: str) -> None:
        """Only `capture` and `data` may differ."""
        event = corpus.maximal(kind)
        tree = lowered(event, ceiling)
        assert isinstance(_DECODER.decode(encode(tree)), Event)
        for name in event.keys() - {"capture", "data"}:
            assert tree[name] == event[name]
        assert tree["capture"] == ("metadata" if ceiling == "redacted" else ceiling)

    @pytest.mark.parametrize("ceiling", LEVELS)
    def test_the_copy_of_a_copy_is_the_copy(self, kind: str, ceiling: str) -> None:
        """Byte for byte."""
        once = made(corpus.maximal(kind), ceiling)
        assert made(json.loads(once), ceiling) == once

    def test_the_way_down_makes_no_difference(self, kind: str) -> None:
        """Through any level is the same as straight to the lowest."""
        event = corpus.maximal(kind)
        for level in ("metadata", "none"):
            for between in LEVELS[LEVELS.index(level) :]:
                assert lowered(lowered(event, between), level) == lowered(event, level)

    @pytest.mark.parametrize("level", LEVELS)
    def test_what_is_no_higher_than_the_ceiling_passes_byte_for_byte(
        self, kind: str, level: str
    ) -> None:
        """An event that keeps to its level, whatever its layout."""
        raw = json.dumps(at_level(corpus.maximal(kind), level), indent=1).encode()
        decoded = _DECODER.decode(raw)
        assert isinstance(decoded, Event)
        copies = _COPIER.of(decoded, Context())
        assert copies.claim is None
        for ceiling in LEVELS[LEVELS.index(level) :]:
            assert copies.copy(copies.grant(ceiling), View()) is None

    def test_the_event_itself_is_left_as_it_was(self, kind: str) -> None:
        """Copies at other levels are made from the same tree."""
        event = corpus.maximal(kind)
        decoded = _DECODER.decode(encode(event))
        assert isinstance(decoded, Event)
        before = copy.deepcopy(decoded.tree)
        copies = _COPIER.of(decoded, Context())
        for ceiling in LEVELS:
            copies.copy(copies.grant(ceiling), View(digests=False))
        assert decoded.tree == before

    def test_fields_that_no_schema_names_stay_at_metadata(self, kind: str) -> None:
        """They count as metadata where the type has levels (AEP-0002 §5.1), and go where not."""
        event = corpus.maximal(kind)
        event["data"]["vendor.note"] = {"deep": ["kept"]}
        tree = lowered(event, "metadata")
        if kind in corpus.UNMAPPED:
            assert "data" not in tree
        else:
            assert tree["data"]["vendor.note"] == {"deep": ["kept"]}

    @pytest.mark.parametrize("level", ["none", "metadata", "redacted"])
    def test_data_above_the_declared_level_are_cut_and_told(self, kind: str, level: str) -> None:
        """Equal levels don't mean that an event passes unread."""
        event = {**corpus.maximal(kind), "capture": level}
        decoded = _DECODER.decode(encode(event))
        assert isinstance(decoded, Event)
        copies = _COPIER.of(decoded, Context())
        excess = level == "none" and event["data"] != {}
        excess = excess or tells(event, "needs-full")
        excess = excess or (level == "metadata" and tells(event, "needs-redacted"))
        assert copies.claim == ("exceeded" if excess else None)
        if excess:
            tree = copies.copy(copies.grant("full"), View())
            assert tree is not None
            assert tree["capture"] == level
            assert not tells(tree, _BELOW[level])


@pytest.mark.parametrize("kind", _UNREGISTERED)
@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_type_that_is_not_registered_loses_its_data_below_its_level(
    kind: str, level: str
) -> None:
    """Nothing says what is in them; at their own level they pass."""
    event = corpus.envelope(kind, level, data={"text": "kept"})
    assert lowered(event, level) == event
    below = LEVELS[LEVELS.index(level) - 1]
    assert "data" not in lowered(event, below)


leaves = st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.none())
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@st.composite
def filled(draw: st.DrawFn) -> tuple[Tree, list[str]]:
    """A maximal event in which every text that needs more than metadata is arbitrary, and these
    texts; opaque objects hold arbitrary trees around them."""
    event = corpus.maximal(draw(st.sampled_from(corpus.TYPES)))
    secrets: list[str] = []

    def fill(value: Any, around: str = "") -> Any:
        if isinstance(value, dict):
            return {name: fill(member, name) for name, member in value.items()}
        if isinstance(value, list):
            return [fill(member, around) for member in value]
        if value in ("needs-redacted", "needs-full", "starred"):
            secrets.append(f"⟦{draw(st.text(min_size=1))}⟧")
            return secrets[-1] if draw(st.booleans()) else secrets[-1] + draw(st.text(max_size=3))
        return value

    event["data"] = fill(event["data"])
    return event, secrets


@settings(suppress_health_check=list(HealthCheck), max_examples=500, deadline=None)
@given(filled(), st.sampled_from(LEVELS[:3]))
def test_no_text_survives_whatever_it_says(case: tuple[Tree, list[str]], ceiling: str) -> None:
    """Arbitrary texts in every gated or starred position leave no trace in a copy below full."""
    event, secrets = case
    tree = lowered(event, ceiling)
    said = {leaf for leaf in members(tree) if isinstance(leaf, str)}
    assert not [s for s in secrets if any(s in leaf for leaf in said)]


@settings(suppress_health_check=list(HealthCheck), max_examples=150, deadline=None)
@given(st.dictionaries(st.text(), trees, max_size=5), st.sampled_from(LEVELS))
def test_values_without_their_form_keep_booleans_and_numbers_only(
    values: Tree, ceiling: str
) -> None:
    """Whatever stands among them; a number under a key that asks for a credential goes too."""
    event = corpus.envelope("attention.answered", "full", data={"answer": {"values": values}})
    kept = lowered(event, ceiling).get("data", {"answer": {"values": {}}})["answer"]["values"]
    if ceiling == "full":
        assert kept == values
    else:
        assert all(isinstance(value, int | float) for value in kept.values())
        assert kept.items() <= {k: v for k, v in values.items() if not isinstance(v, str)}.items()


@needs_upstream
@pytest.mark.parametrize("case", cases("capture-gating/cases.json"), ids=lambda case: case["name"])
def test_the_values_of_the_capture_gating_fixture(case: Tree) -> None:
    """What comes out of each case, by name."""
    form = read_attention({"kind": "form", "fields": case["fields"]}).form
    assert gate_values(form, case["values"], case["ceiling"]).kept == case["expect"]


_FIELDS = [
    {"id": "owner", "type": "string", "label": "Approver for Acme"},
    {"id": "zone", "type": "select", "label": "Zone", "choices": [{"id": "eu", "label": "Acme"}]},
    {"id": "n", "type": "number", "label": "Count"},
    {"id": "pin", "type": "number", "label": "Your PIN"},
    {"id": "1", "type": "string", "label": "API key"},
]
_FORM = read_attention({"kind": "form", "fields": _FIELDS}).form
_VALUES = {"owner": "Dana", "zone": "eu", "n": 3, "pin": 4711, "1": "sk-secret", "extra": True}


@pytest.mark.parametrize("kind", ["attention.answered", "control.attention.respond"])
@pytest.mark.parametrize(
    ("level", "ceiling", "kept"),
    [
        ("full", "full", _VALUES),
        ("full", "redacted", {"zone": "eu", "n": 3}),
        ("full", "metadata", {"zone": "eu", "n": 3}),
        ("redacted", "full", {"owner": "Dana", "zone": "eu", "n": 3}),
        ("redacted", "redacted", {"owner": "Dana", "zone": "eu", "n": 3}),
        ("redacted", "metadata", {"zone": "eu", "n": 3}),
        ("metadata", "full", {"zone": "eu", "n": 3}),
    ],
)
def test_with_the_request_at_hand_closed_choices_stay(
    kind: str, level: str, ceiling: str, kept: Tree
) -> None:
    """Keys that the form doesn't have, and credentials, go at every level below full."""
    event = corpus.envelope(kind, level, data={"answer": {"values": _VALUES}})
    assert lowered(event, ceiling, form=_FORM)["data"]["answer"]["values"] == kept


def test_a_value_of_the_wrong_type_does_not_stay_at_metadata() -> None:
    """A text in a number field is free text."""
    values = {"n": "Dana", "zone": ["eu"], "owner": True, "pin": None}
    event = corpus.envelope("attention.answered", "full", data={"answer": {"values": values}})
    assert lowered(event, "metadata", form=_FORM)["data"]["answer"]["values"] == {}


def test_full_under_redacted_mints_no_redacted() -> None:
    """Case C21: without a pipeline the copy is a metadata copy."""
    answer = {
        "option": "2",
        "text": "call me on +1 555 0100",
        "values": {"owner": "Dana", "replicas": 5, "canary": True, "zone": "somewhere else"},
    }
    data = {"answer": answer, "via": "oob"}
    event = corpus.envelope("attention.answered", "full", subject="R-7", data=data)
    tree = lowered(event, "redacted")
    assert tree["capture"] == "metadata"
    values = {"replicas": 5, "canary": True}
    assert tree["data"] == {"answer": {"option": "2", "values": values}, "via": "oob"}


def test_labels_and_prompts_are_content() -> None:
    """Case C22: ids, types, required and order stay, so that an answer can be interpreted."""
    data = {
        "kind": "form",
        "prompt": "Who signs off the Acme merger rollout?",
        "fields": [
            {"id": "owner", "type": "string", "label": "Approver for Acme", "required": True},
            {
                "id": "zone",
                "type": "select",
                "label": "Zone",
                "choices": [{"id": "eu-1", "label": "Frankfurt"}, {"id": "us-1", "label": "Ohio"}],
            },
        ],
        "respond_via": ["control"],
    }
    event = corpus.envelope("attention.requested", "redacted", subject="deployer", data=data)
    assert lowered(event, "metadata")["data"] == {
        "kind": "form",
        "prompt": "demo requests form: deployer",
        "fields": [
            {"id": "owner", "type": "string", "label": "owner", "required": True},
            {
                "id": "zone",
                "type": "select",
                "label": "zone",
                "choices": [{"id": "eu-1", "label": "eu-1"}, {"id": "us-1", "label": "us-1"}],
            },
        ],
        "respond_via": ["control"],
    }
    del event["subject"]
    assert lowered(event, "metadata")["data"]["prompt"] == "demo requests form"


def test_a_field_above_the_claimed_level_goes_at_equal_levels() -> None:
    """Case C37."""
    tool = {"name": "Bash", "call_id": "c1"}
    data = {"tool": tool, "args_redacted": {"command": "grep 12345 repo"}}
    event = corpus.envelope("tool.requested", "metadata", data=data)
    assert lowered(event, "metadata")["data"] == {"tool": tool}


def test_the_default_level_is_metadata() -> None:
    """It is honoured, and not written out."""
    event = corpus.envelope("progress.status", data={"message": "text", "phase": "scan"})
    assert lowered(event, "full")["data"] == {"phase": "scan"}
    assert "capture" not in lowered(event, "full")


@pytest.mark.parametrize("ceiling", LEVELS[1:])
def test_a_route_may_leave_out_digests(ceiling: str) -> None:
    """Also at full, and where nothing else changes; without any the event passes as it is."""
    event = corpus.maximal("tool.completed")
    assert "result_digest" in lowered(event, ceiling)["data"]
    assert "result_digest" not in lowered(event, ceiling, digests=False)["data"]
    plain = corpus.maximal("tool.denied")
    assert without_digests(plain) is plain
