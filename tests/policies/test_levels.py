"""The capture ladder."""

import pytest

from hookbus.policies.levels import LEVELS, Grant, declared, grant, held


def test_a_copy_never_rises_above_its_event_or_its_ceiling():
    """Whatever the two levels, the copy is at neither more than one nor more than the other."""
    for level in LEVELS:
        for ceiling in LEVELS:
            honoured = LEVELS.index(grant(level, ceiling).level)
            assert honoured <= min(LEVELS.index(level), LEVELS.index(ceiling))


def test_full_under_a_redacted_ceiling_becomes_metadata():
    """Leaving things out doesn't make a redacted copy (AEP-0001 §8.2e)."""
    assert grant("full", "redacted") == Grant("metadata", rewrite=True)


@pytest.mark.parametrize(
    ("level", "ceiling"), [("full", "full"), ("redacted", "redacted"), ("redacted", "full")]
)
def test_a_believed_level_passes_a_ceiling_that_is_no_lower(level, ceiling):
    """It passes byte for byte."""
    assert grant(level, ceiling) == Grant(level, rewrite=False)


@pytest.mark.parametrize("level", ["none", "metadata"])
@pytest.mark.parametrize("ceiling", LEVELS)
def test_a_low_level_is_not_believed(level, ceiling):
    """An event that calls itself metadata is rewritten all the same."""
    assert grant(level, ceiling).rewrite


@pytest.mark.parametrize("ingress", LEVELS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_declaration_only_lowers(ingress, level):
    """What an ingress holds is a bound."""
    event = {"extensions": {"dev.hookbus.capture": {"level": level}}}
    assert held(ingress, declared(event)) == min(ingress, level, key=LEVELS.index)


@pytest.mark.parametrize(
    "declaration", [None, "metadata", {}, {"level": "Metadata"}, {"level": None}, {"level": []}, []]
)
def test_a_malformed_declaration_is_told_apart_and_ignored(declaration):
    """It neither lowers nor raises."""
    found = declared({"extensions": {"dev.hookbus.capture": declaration}})
    assert found == "malformed"
    assert held("redacted", found) == "redacted"


@pytest.mark.parametrize("event", [{}, {"extensions": {}}, {"extensions": {"com.example.x": 1}}])
def test_most_events_declare_nothing(event):
    """Then the ingress says what they hold."""
    assert declared(event) is None
