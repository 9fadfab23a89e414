"""The official validator, as the reference of all verdicts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from agenthooksprotocol.runtime import Validator

from hookbus.codecs.decode import Decoder

EXAMPLES = int(os.environ.get("HOOKBUS_PARITY_EXAMPLES", "3000"))
"""About how many values the properties of `test_parity` draw altogether."""

Accepts = Callable[[str, Any], bool]

_FILES = {
    "tool.before": "tool-before.schema.json",
    "tool.after": "tool-after.schema.json",
    "session.start": "session-start.schema.json",
    "session.end": "session-end.schema.json",
}


class Official:
    """The official verdicts."""

    def __init__(self) -> None:
        self._validator = Validator()
        self._branches: dict[str, Any] = {}

    def accepts(self, kind: str, value: Any) -> bool:
        """Of a value as `event`, `observe-notification`, …: what the SDK's own entry says."""
        try:
            self._validator.validate(kind, value)
        except Exception:  # noqa: BLE001 - it also fails on values that it doesn't expect
            return False
        return True

    def accepts_event(self, value: Any) -> bool:
        """The verdict of the one branch of the official union that has the event's type: the same
        as the union's, and many times faster where it is negative."""
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            return self.accepts("event", value)
        if kind not in self._branches:
            file = _FILES.get(kind, f"catalogue-event.schema.json#/$defs/{kind}")
            union = self._validator.validators["event.schema.json"]
            base = union.schema["$id"].rpartition("/")[0]
            if not any(branch["$ref"].endswith(file) for branch in union.schema["oneOf"]):
                return self.accepts("event", value)
            self._branches[kind] = union.evolve(schema={"$ref": f"{base}/{file}"})
        verdict: bool = self._branches[kind].is_valid(value)
        return verdict


@pytest.fixture(scope="session")
def decoder() -> Decoder:
    return Decoder()


@pytest.fixture(scope="session")
def official() -> Official:
    return Official()
