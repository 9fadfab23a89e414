"""The verdict on any body equals the official one. The listed deviations (strict parsing, caps, a
trailing newline in a URL) are outside of what is drawn here, and have their own tests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from hookbus.codecs.elicitation import Bodies, BodyFault
from hookbus.codecs.form import read_form
from hookbus.codecs.form_types import are_form_params, is_result, known_form
from hookbus.schemas.loader import load_elicitation
from tests.codecs.conftest import EXAMPLES, Official
from tests.corpus import elicitations

_SETTINGS: dict[str, Any] = {
    "max_examples": EXAMPLES // 3,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
}
_BODIES = Bodies(load_elicitation())


def _has_shape(verdict: Any) -> bool:
    """Whether a body is of the MCP shape, whatever else is wrong with it."""
    return not isinstance(verdict, BodyFault) or verdict.code in ("body_mismatch", "body_content")


@pytest.mark.parametrize("body", elicitations.requests())
def test_requests_of_the_corpus_are_valid(official: Official, body: Any) -> None:
    """Params of every kind are accepted by the official validator, the types and the schema."""
    mode = body.get("mode", "form")
    assert official.accepts("mcp-elicitation#request", body)
    assert not isinstance(_BODIES.request(json.dumps(body), mode), BodyFault)
    assert are_form_params(body) == (mode == "form")
    assert known_form(body) == (read_form(body) if mode == "form" else None)
    assert _BODIES._check("request", body) is None


@pytest.mark.parametrize("body", elicitations.results())
def test_results_of_the_corpus_are_valid(official: Official, body: Any) -> None:
    """Results of every kind are of the MCP shape for the official validator and for ours."""
    assert official.accepts("mcp-elicitation#result", body)
    assert _has_shape(_BODIES.result(json.dumps(body), "form", body["action"]))
    assert is_result(body)
    assert _BODIES._check("result", body) is None


@pytest.mark.parametrize("body", elicitations.requests())
def test_one_change_to_a_request(official: Official, body: Any) -> None:
    """Every single change to valid params gets the official verdict, from types and schema."""
    for changed in elicitations.one_off(body):
        theirs = official.accepts("mcp-elicitation#request", changed)
        assert (_BODIES._check("request", changed) is None) == theirs, changed
        assert theirs or not are_form_params(changed), changed
        assert (known_form(changed) is not None) == are_form_params(changed), changed


@pytest.mark.parametrize("body", elicitations.results())
def test_one_change_to_a_result(official: Official, body: Any) -> None:
    """Every single change to a valid result gets the official verdict."""
    for changed in elicitations.one_off(body):
        theirs = official.accepts("mcp-elicitation#result", changed)
        assert _has_shape(_BODIES.result(json.dumps(changed), "form", "accept")) == theirs, changed
        assert theirs or not is_result(changed), changed


@settings(**_SETTINGS)
@given(body=elicitations.near(elicitations.requests()))
def test_requests_are_judged_as_by_the_official_validator(official: Official, body: Any) -> None:
    """A value near valid params gets the official verdict, and what the types let pass is valid."""
    ours = _has_shape(_BODIES.request(json.dumps(body), "form"))
    theirs = official.accepts("mcp-elicitation#request", body)
    assert ours == theirs
    assert theirs or not are_form_params(body)
    assert (known_form(body) is not None) == are_form_params(body)


@settings(**_SETTINGS)
@given(body=elicitations.near(elicitations.results()))
def test_results_are_judged_as_by_the_official_validator(official: Official, body: Any) -> None:
    """A value near a valid result gets the official verdict."""
    ours = _has_shape(_BODIES.result(json.dumps(body), "form", "accept"))
    theirs = official.accepts("mcp-elicitation#result", body)
    assert ours == theirs
    assert theirs or not is_result(body)
