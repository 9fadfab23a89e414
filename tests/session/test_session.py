"""The session that the tests play is the one that the demo sends."""

from __future__ import annotations

import asyncio
import json

import pytest
from agenthooksprotocol.runtime import Validator

from tests.session import script
from tests.session.record import DEMO, record

KINDS = {"hooks/observe": "observe-notification", "hooks/intercept": "intercept-request"}


@pytest.fixture(scope="module")
def live() -> list[bytes]:
    return asyncio.run(record())


def test_the_shipped_file_is_what_the_live_session_sends(live: list[bytes]) -> None:
    assert DEMO.read_bytes().splitlines() == live


def test_the_official_validator_accepts_every_message(live: list[bytes]) -> None:
    validator = Validator()
    for line in live:
        message = json.loads(line)
        validator.validate(KINDS[message["method"]], message)


def test_the_denied_call_was_denied_by_the_backend(live: list[bytes]) -> None:
    events = [json.loads(line)["params"]["event"] for line in live]
    denied = [(e.get("decision"), e.get("decidedBy"), e.get("outcome")) for e in events]
    assert ("deny", "hook", None) in denied
    assert (None, None, "denied") in denied


def test_every_canary_is_in_the_session(live: list[bytes]) -> None:
    everything = b"\n".join(live).decode()
    assert [canary for canary in script.CANARIES if canary not in everything] == []
