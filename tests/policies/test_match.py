"""The attr-match filter (AEP-0003 §6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbus.policies.match import InvalidFilter, compile_filter

AHP = {
    "id": "e1",
    "type": "tool.before",
    "source": "urn:agent:1",
    "harness": {"name": "demo", "version": "1"},
    "session": {"id": "s1"},
}
AEP = {
    "aep": "0.1", "id": "a1", "type": "attention.requested", "source": "aep://h", "agent": "demo",
    "session": "s1", "seq": 3, "epoch": 1, "zone": "eu", "retries": 1, "live": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("match", "event", "expected"),
    [
        ({}, AHP, True),
        ({}, AEP, True),
        ({"type": "tool.before"}, AHP, True),
        ({"type": "tool.*"}, AHP, True),
        ({"type": "tool.before.*"}, AHP, False),
        ({"type": "attention.*"}, {**AEP, "type": "attention"}, False),
        ({"type": "attention.*"}, {**AEP, "type": "attentions.x"}, False),
        ({"type": ["x.y", "tool.before"]}, AHP, True),
        ({"type": ["user.*", "tool.*"], "source": "urn:agent:1"}, AHP, True),
        ({"type": "tool.*", "source": "urn:agent:2"}, AHP, False),
        ({"harness.name": "demo", "session.id": "s1"}, AHP, True),
        ({"session.id": "s2"}, AHP, False),
        ({"harness.name": "demo"}, {**AHP, "harness": "demo"}, False),
        ({"session.id": "s1"}, AEP, False),
        ({"agent": "demo"}, AHP, False),
        ({"id": "e1"}, AHP, False),
        ({"session": "s1", "zone": "eu"}, AEP, True),
        ({"retries": 1, "live": True}, AEP, True),
        ({"retries": True}, AEP, False),
        ({"live": 1}, AEP, False),
        ({"epoch": 0}, {k: v for k, v in AEP.items() if k != "epoch"}, True),
        ({"severity": "info", "capture": "metadata"}, AEP, True),
        ({"severity": {"gte": "notice"}}, AEP, False),
        ({"severity": {"gte": "debug", "lte": "info"}}, AEP, True),
        ({"severity": {"gte": "error"}}, {**AEP, "severity": "critical"}, True),
        ({"severity": {"gte": "debug"}}, {**AEP, "severity": "loud"}, False),
        ({"severity": "info"}, AHP, False),
    ],
)
def test_a_filter_matches_when_all_its_members_do(match, event, expected):
    """Every member has to match, by exact JSON equality, family or severity range."""
    assert compile_filter(match).matches(event) is expected


@pytest.mark.parametrize(
    "match",
    [
        [], None, "type", {"type": "*"}, {"type": "to*l"}, {"type": "*.before"}, {"type": ".*"},
        {"type": "tool.**"}, {"source": "urn:*"}, {"type": []}, {"type": None}, {"type": 1.5},
        {"type": [["a"]]}, {"type": {"gte": "a"}}, {"severity": {}}, {"severity": {"gt": "info"}},
        {"severity": {"gte": "loud"}}, {"severity": "loud"}, {"capture": "Full"}, {"time": "x"},
        {"seq": 1}, {"aep": "0.1"}, {"data": "x"}, {"traceparent": "x"}, {"Bad-Name": "x"},
        {"harness.version": "1"}, {"a" * 21: "x"}, {"severity": {"gte": ["info"]}}, {1: "x"},
    ],
)  # fmt: skip
def test_a_filter_outside_the_grammar_is_refused(match):
    """A typo may never make a route that silently matches nothing, or everything."""
    with pytest.raises(InvalidFilter):
        compile_filter(match)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(
    event=st.dictionaries(
        st.sampled_from(["type", "source", "harness", "session", "aep", "severity", "epoch"]),
        json_values,
    )
)
def test_matching_never_raises_whatever_the_event(event):
    """A filter may be asked about values that were never validated."""
    for match in (
        {"type": "tool.*"},
        {"harness.name": "x"},
        {"session.id": "x"},
        {"severity": {"gte": "info"}},
        {"epoch": 0},
        {"type": ["a", "b.*"]},
    ):
        assert compile_filter(match).matches(event) in (True, False)
