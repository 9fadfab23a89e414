"""A copy made from an event's derived type is the one that is made from its tree."""

import json

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.policies.capture import FormNote, View
from hookbus.policies.copies import Context
from hookbus.policies.levels import Grant
from hookbus.policies.selection import Selection
from hookbus.router import build
from tests.corpus import events
from tests.corpus.mutations import near_events

LEVELS = ("none", "metadata")
COPIER = build.copier()
DECODER = Decoder()
CHOICES = st.sampled_from(("omit", "metadata", "body"))
CATEGORIES = st.sampled_from(("text", "reasoning", "images", "files", "audio"))
SELECTIONS = st.none() | st.builds(
    lambda default, named: Selection.of({"default": default, **named}),
    CHOICES,
    st.dictionaries(CATEGORIES, CHOICES, max_size=2),
)
VIEWS = (
    View(),
    View(native=False),
    View(Selection.of({"default": "omit"})),
    View(Selection.of({"default": "metadata", "text": "omit", "images": "body"})),
)
CORPUS = [
    pytest.param(event, id=f"{name}-{kind}")
    for name, pool in (("max", events.maximal()), ("min", events.minimal()))
    for kind, event in sorted(pool.items())
]


def decoded(tree) -> Event:
    event = DECODER.decode(json.dumps(tree).encode())
    assert isinstance(event, Event)
    return event


def both(event, level, view, note=None):
    """The copy from the derived type, and the one from the tree."""
    copies = COPIER.of(event, Context(note=note))
    granted = Grant(level, rewrite=True)
    return json.loads(copies.encoded(granted, view)), copies.copy(granted, view)


def in_any_order(copy):
    """A copy whose new gaps, which have no order of their own, are sorted."""
    if isinstance(copy, dict):
        copy = {name: in_any_order(value) for name, value in copy.items()}
        if isinstance(copy.get("gaps"), list):
            copy["gaps"] = sorted(copy["gaps"], key=json.dumps)
        return copy
    return [in_any_order(item) for item in copy] if isinstance(copy, list) else copy


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tree", CORPUS)
def test_both_ways_lead_to_the_same_copies(tree, level):
    """Whatever of the copy a route shows, and in whatever order the routes ask for it."""
    event = decoded(tree)
    assert event.struct is not None
    for view in (*VIEWS, *reversed(VIEWS)):
        fast, slow = both(event, level, view)
        assert in_any_order(fast) == in_any_order(slow)
    copies = COPIER.of(event, Context())
    for view in (*VIEWS, *reversed(VIEWS)):
        fast = json.loads(copies.encoded(Grant(level, rewrite=True), view))
        assert in_any_order(fast) == in_any_order(copies.copy(Grant(level, rewrite=True), view))


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=near_events(), level=st.sampled_from(LEVELS), selection=SELECTIONS)
def test_both_ways_lead_to_the_same_copies_of_any_valid_event(tree, level, selection):
    """Events of all types with members added, removed, changed or borrowed."""
    event = DECODER.decode(json.dumps(tree).encode())
    assume(isinstance(event, Event) and event.protocol == "ahp")
    fast, slow = both(event, level, View(selection))
    assert in_any_order(fast) == in_any_order(slow)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tree", CORPUS)
def test_a_copy_of_a_copy_is_the_copy(tree, level):
    """Byte for byte."""
    granted = Grant(level, rewrite=True)
    once = COPIER.of(decoded(tree), Context()).encoded(granted, View())
    again = DECODER.decode(once)
    assert isinstance(again, Event)
    assert COPIER.of(again, Context()).encoded(granted, View()) == once


@pytest.mark.parametrize("tree", CORPUS)
def test_the_event_itself_stays_as_it_is(tree):
    """Copies of all levels are made from one event."""
    event = decoded(tree)
    before = msgspec.json.encode(event.struct)
    for level in LEVELS:
        both(event, level, View(Selection.of({"default": "omit"})))
    assert msgspec.json.encode(event.struct) == before


@pytest.mark.parametrize("note", [
    FormNote({"fields": [], "values": {"big": 2**70}, "body": "conforming"}),
    FormNote({"body": "body_json"}, "body_json", "/elicitation/request"),
    FormNote(None, "body_schema", "/elicitation/request"),
    FormNote(None),
])  # fmt: skip
def test_what_is_noted_of_a_form_is_in_both(note):
    """The extension at metadata, and the gap of a nonconforming body."""
    for pool in (events.maximal(), events.minimal()):
        for level in LEVELS:
            fast, slow = both(decoded(pool["user.elicitation.request"]), level, View(), note)
            assert in_any_order(fast) == in_any_order(slow)


@pytest.mark.parametrize("amount", [3, 0.25, 2**63, 2**70, 1e300])
def test_a_number_stays_as_it_was_written(amount):
    """An integer stays one where any number may stand, and keeps all its digits."""
    tree = events.maximal()["model.response.after"]
    tree["usage"]["cost"]["amount"] = amount
    event = decoded(tree)
    assert event.struct is not None
    copy = COPIER.of(event, Context()).encoded(Grant("metadata", rewrite=True), View())
    assert json.dumps(json.loads(copy)["usage"]["cost"]["amount"]) == json.dumps(amount)


def test_an_event_that_only_the_schema_accepts_has_the_same_copy():
    """`1.0` is an integer in JSON Schema, but in no derived type."""
    tree = events.maximal()["model.response.after"]
    fast = both(decoded(tree), "metadata", View())[0]
    tree["attempt"]["number"] = float(tree["attempt"]["number"])
    event = decoded(tree)
    assert event.struct is None
    assert in_any_order(both(event, "metadata", View())[0]) == in_any_order(fast)
