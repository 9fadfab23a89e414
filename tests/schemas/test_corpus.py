"""The corpus keeps its promise: content holds the canary, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hookbus.schemas.loader import Schema, event_types, load, reference, target
from tests.corpus import events

_SCHEMAS = load()
_CONTENT = {"text", "opaque", "path", "identity"}


def _named(schema: Any, name: str) -> Schema | None:
    """The schema that names a member of an object."""
    schema = target(_SCHEMAS, schema)
    member = schema.get("properties", {}).get(name)
    if isinstance(member, dict):
        return member
    found = (_named(branch, name) for branch in schema.get("allOf", ()))
    return next((each for each in found if each is not None), None)


def _items(schema: Any) -> Schema:
    items: Schema = target(_SCHEMAS, schema)["items"]
    return items


def _capture(schema: Schema) -> str:
    capture: str = schema.get("x-capture") or target(_SCHEMAS, schema)["x-capture"]
    return capture


def _leaves(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, str, Any]]:
    """Path, class and value of all that is not descended into; unnamed members are opaque."""
    capture = _capture(schema)
    if capture == "structural" and isinstance(value, dict):
        for name, member in value.items():
            named = _named(schema, name)
            if named is None:
                yield f"{path}/{name}", "unnamed", {name: member}
            else:
                yield from _leaves(member, named, f"{path}/{name}")
    elif capture == "structural" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, _items(schema), f"{path}/{index}")
    else:
        yield path, capture, value


@pytest.mark.parametrize("kind", event_types(_SCHEMAS))
def test_content_holds_the_canary_and_tokens_do_not(kind: str) -> None:
    """A leak of any content of a maximal event shows the canary; what may stay never does."""
    seen = set()
    for path, capture, value in _leaves(events.maximal()[kind], reference(kind), ""):
        held = events.CANARY in json.dumps(value).lower()
        seen.add(capture)
        if capture in _CONTENT and value:
            assert held, path
        elif capture in ("structural", "token"):
            assert not held, path
        elif capture == "unnamed":
            assert held, path
    assert {"structural", "token", "text", "opaque", "path", "unnamed"} <= seen


@pytest.mark.parametrize("kind", event_types(_SCHEMAS))
def test_minimal_events_hold_no_member_that_they_need_not(kind: str) -> None:
    """Each top-level member of a minimal event is required: without it, the schema refuses."""
    event = events.minimal()[kind]
    required = {name for node in _branches(reference(kind)) for name in node.get("required", ())}
    assert event.keys() == required


def _branches(schema: Any) -> Iterator[Schema]:
    schema = target(_SCHEMAS, schema)
    yield schema
    for branch in schema.get("allOf", ()):
        yield from _branches(branch)
