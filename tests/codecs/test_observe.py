"""The notification that carries an event to a hook backend."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agenthooksprotocol.runtime import Validator
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.codecs.observe import is_event, notification

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """Valid AHP events with free identifiers and free native content."""
    return {
        "id": draw(words),
        "source": "urn:example:agent:1",
        "type": "hook.failure",
        "time": "2026-08-24T08:51:14Z",
        "harness": {"name": draw(words), "version": "1.0.0"},
        "parentEventId": draw(words),
        "native": draw(json_values),
        "failure": {
            "backendId": "com.example.policy",
            "reason": "deadline_exceeded",
            "policy": draw(st.sampled_from(["fail-closed", "fail-open"])),
        },
    }


@pytest.fixture(scope="module")
def official() -> Validator:
    """The validator of the official SDK."""
    return Validator()


@settings(deadline=None)
@given(event=events(), ascii_only=st.booleans(), indent=st.none() | st.integers(0, 2))
def test_the_official_validator_accepts_the_notification_of_any_valid_event(
    official: Validator, event: dict[str, Any], ascii_only: bool, indent: int | None
) -> None:
    """Whatever its spelling, the wrapper is right and the event comes out as it was."""
    value = json.dumps(event, ensure_ascii=ascii_only, indent=indent).encode()
    wrapped = json.loads(notification(value))
    official.validate("observe-notification", wrapped)
    assert wrapped["params"]["event"] == event
    assert "id" not in wrapped


def test_the_bytes_of_the_event_are_not_touched() -> None:
    """What was validated is what is sent, spaces and all."""
    assert b'"event":{ "id" :1}}}' in notification(b'{ "id" :1}')


@pytest.mark.parametrize(
    "value",
    [
        b"", b"null", b"[]", b"{}", b'{"harness":{}}', b'{"aep":"0.1","type":"run.started"}',
        b'{"harness":{},"type":"x"}},"more":{"a":{"b":1', b'{"harness":{},"type":"x"} {}',
        b'{"harness":{},"type":"\xff"}', b'{"harness":{},"type":1}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_event_is_told_before_it_is_wrapped(value: bytes) -> None:
    """A value that would break out of the notification, or that is of another protocol."""
    assert not is_event(value)
    assert is_event(b'{"harness":{"name":"h","version":"1"},"type":"session.end"}')
