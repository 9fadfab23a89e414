"""The schema documents: complete in their annotations, and free of draft-07's traps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agenthooksprotocol.runtime import Validator
from jsonschema import Draft7Validator

from hookbus.schemas.loader import event_types, load, reference, target

_SCHEMAS = load()
_CLASSES = {"structural", "token", "text", "opaque", "path", "identity", "part"}
_FOLDER = Path(__file__).parents[2] / "schemas" / "ahp"
_DOCUMENTS = {path.name: json.loads(path.read_text()) for path in _FOLDER.glob("*.json")}


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for child in node.values():
            yield from _nodes(child)
    elif isinstance(node, list):
        for child in node:
            yield from _nodes(child)


def _members(schema: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Path, own schema and resolved schema of everything in a value, down to parts and opaques."""
    schema = target(_SCHEMAS, schema)
    for name, member in schema.get("properties", {}).items():
        if member is not False:
            yield from _member(member, f"{path}/{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from _member(schema[keyword], f"{path}/*")
    for branch in schema.get("allOf", ()):
        yield from _members(branch, path)


def _member(schema: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    resolved = target(_SCHEMAS, schema)
    yield path, schema, resolved
    if resolved.get("x-capture") != "part":
        yield from _members(resolved, path)


def test_the_types_are_the_official_ones() -> None:
    """There is a definition for each of the 32 official event types, and no other."""
    official = set()
    for schema in Validator().validators.values():
        for node in _nodes(schema.schema):
            if "event" in node.get("properties", {}) and "modes" in node["properties"]:
                official.update(node["properties"]["event"]["enum"])
    assert set(event_types(_SCHEMAS)) == official
    assert len(event_types(_SCHEMAS)) == 32


@pytest.mark.parametrize("kind", event_types(_SCHEMAS))
def test_every_member_has_a_capture_class(kind: str) -> None:
    """At any depth, on the member or on the definition that it refers to, is one class of the
    closed list."""
    seen: dict[str, set[str]] = {}
    for path, own, resolved in _members(reference(kind), ""):
        capture = own.get("x-capture", resolved.get("x-capture"))
        if capture is not None:
            seen.setdefault(path, set()).add(capture)
        else:
            seen.setdefault(path, set())
    assert {"/id", "/source", "/time", "/type", "/turn/id", "/items", "/items/*"} <= seen.keys()
    for path, classes in seen.items():
        assert len(classes) == 1, path
        assert classes <= _CLASSES, path


def test_messages_hold_parts() -> None:
    """What is in a message's `parts` is a part, wherever messages are."""
    classes = {
        path: resolved["x-capture"] for path, _, resolved in _members(reference("tool.after"), "")
    }
    assert classes["/items/*"] == "structural"
    assert classes["/items/*/role"] == "structural"
    assert classes["/items/*/parts/*"] == "part"
    assert classes["/fileChanges/*/before"] == "part"


def test_no_reference_has_siblings() -> None:
    """Draft-07 ignores what stands beside a `$ref`: nothing does."""
    for document in _DOCUMENTS.values():
        for node in _nodes(document):
            assert "$ref" not in node or len(node) == 1


def test_every_document_is_a_draft_07_schema() -> None:
    """Each file is valid by itself, and named by its `$id`."""
    assert {"common.json", "content.json", "tool.json", "user.json"} <= _DOCUMENTS.keys()
    for name, document in _DOCUMENTS.items():
        Draft7Validator.check_schema(document)
        assert document["$id"] == name


def test_every_reference_leads_somewhere() -> None:
    """All references of the loaded document are local, and none is left without a definition."""
    for node in _nodes(_SCHEMAS["definitions"]):
        if "$ref" in node:
            assert node["$ref"].startswith("#/definitions/")
            assert isinstance(target(_SCHEMAS, node), dict)


def test_every_definition_is_used() -> None:
    """A definition that nothing refers to is an event, a message, or one that the judge names."""
    used = {node["$ref"].rpartition("/")[2] for node in _nodes(_SCHEMAS) if "$ref" in node}
    roots = {"observe", "intercept", *event_types(_SCHEMAS)}
    unused = _SCHEMAS["definitions"].keys() - used - roots
    assert {name.partition(".")[0] for name in unused} == {"state"}


def test_only_reasons_keep_texts() -> None:
    """`x-capture-keep` stands on texts alone, and lists lower-case tokens."""
    kept = [node for node in _nodes(_SCHEMAS) if "x-capture-keep" in node]
    assert len(kept) == 3
    for node in kept:
        assert node["x-capture"] == "text"
        assert all(token.replace("_", "").islower() for token in node["x-capture-keep"])


def test_an_object_with_its_own_gaps_can_note_them() -> None:
    """What `x-gaps` marks has a `gaps` array of path and reason."""
    marked = [node for node in _nodes(_SCHEMAS) if node.get("x-gaps")]
    assert len(marked) == 1
    paths = {path for path, _, _ in _members(marked[0], "")}
    assert {"/gaps/*/path", "/gaps/*/reason"} <= paths
