"""Where parts are in events."""

from __future__ import annotations

import pytest
from agenthooksprotocol._content import normalized_content_slots

from hookbus.codecs.slots import Slots, values_at
from hookbus.schemas.loader import event_types, load
from tests.corpus import events

_SCHEMAS = load()


@pytest.mark.parametrize("kind", event_types(_SCHEMAS))
def test_parts_are_where_the_official_package_finds_them(kind: str) -> None:
    """The paths that the schema of a type gives are those that the official package projects."""
    official, _ = normalized_content_slots()[kind]
    assert set(Slots(_SCHEMAS, kind).parts) == set(official)


def test_all_parts_of_an_event_are_found_with_their_pointers() -> None:
    """Parts of messages, of both sides of a file change and of items are found in place."""
    event = events.maximal()["tool.after"]
    found = {
        pointer: part["id"]
        for part, pointer in values_at(event, Slots(_SCHEMAS, "tool.after").parts)
    }
    assert found["/items/1/parts/0"] == "part-message-2-1"
    assert found["/fileChanges/0/before"] == "part-before"
    assert found["/fileChanges/1/after"] == "part-created"
    assert len(found) == 2 * 8 + 4


def test_absent_members_hold_no_parts() -> None:
    """A minimal event has none."""
    event = events.minimal()["file.changed"]
    assert list(values_at(event, Slots(_SCHEMAS, "file.changed").parts)) == []
