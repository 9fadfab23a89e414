"""The AEP documents: complete in their levels, and the same as the reference schemas'."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from hookbus.schemas.loader import aep_types, load_aep, payload, target
from tests.upstream import load_json, needs_upstream

_SCHEMAS = load_aep()
_TYPES = aep_types(_SCHEMAS)
_FOLDER = Path(__file__).parents[2] / "schemas" / "aep"
_DOCUMENTS = {path.name: json.loads(path.read_text()) for path in _FOLDER.glob("*.json")}
_DEGRADED = {
    "attention.requested": {
        ("prompt",): "prompt",
        ("options", "*", "label"): "label",
        ("fields", "*", "label"): "label",
        ("fields", "*", "choices", "*", "label"): "label",
    },
    "attention.answered": {("answer", "values"): "values"},
    "control.attention.respond": {("answer", "values"): "values"},
}


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for child in node.values():
            yield from _nodes(child)
    elif isinstance(node, list):
        for child in node:
            yield from _nodes(child)


def _fields(schema: Any, word: str, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Path and annotation of every declared field below a schema, and of all items."""
    schema = target(_SCHEMAS, schema)
    for name, member in schema.get("properties", {}).items():
        member = target(_SCHEMAS, member)
        yield (*path, name), member.get(word)
        yield from _fields(member, word, (*path, name))
    if "items" in schema:
        items = target(_SCHEMAS, schema["items"])
        if "properties" in items:
            yield (*path, "*"), items.get(word)
        yield from _fields(items, word, (*path, "*"))


def test_every_document_is_a_draft_07_schema() -> None:
    """Each file is valid by itself, and named by its `$id`."""
    assert {"envelope.json", "common.json", "attention.json"} <= _DOCUMENTS.keys()
    for name, document in _DOCUMENTS.items():
        Draft7Validator.check_schema(document)
        assert document["$id"] == name


def test_no_reference_has_siblings_and_each_leads_somewhere() -> None:
    """Draft-07 ignores what stands beside a `$ref`: nothing does."""
    for node in _nodes(_SCHEMAS["definitions"]):
        if "$ref" in node:
            assert len(node) == 1
            assert isinstance(target(_SCHEMAS, node), dict)


def test_every_definition_is_used() -> None:
    """A definition that nothing refers to is an event's."""
    used = {node["$ref"].rpartition("/")[2] for node in _nodes(_SCHEMAS) if "$ref" in node}
    assert _SCHEMAS["definitions"].keys() - used == {*_TYPES, "unregistered"}


@pytest.mark.parametrize("kind", _TYPES)
def test_every_declared_field_has_a_level(kind: str) -> None:
    """At any depth, on the member or on the definition that it refers to."""
    assert _SCHEMAS["definitions"][kind]["properties"]["type"] == {"const": kind}
    for path, level in _fields(payload(_SCHEMAS, kind), "x-capture"):
        assert level in ("metadata", "redacted", "full"), path


@pytest.mark.parametrize("kind", _TYPES)
def test_only_the_starred_fields_degrade(kind: str) -> None:
    """A prompt, labels, and the values of a form are metadata that says less there."""
    marked = {p: how for p, how in _fields(payload(_SCHEMAS, kind), "x-degrade") if how}
    assert marked == _DEGRADED.get(kind, {})


@needs_upstream
def test_the_types_are_the_registered_ones() -> None:
    """There is a definition for each of the 46 registered types, and no other."""
    registered = [entry["type"] for entry in load_json("registry/types.json")["types"]]
    assert sorted(_TYPES) == sorted(registered)
    assert len(_TYPES) == 46


@needs_upstream
@pytest.mark.parametrize("kind", _TYPES)
def test_the_levels_are_those_of_the_reference_schemas(kind: str) -> None:
    """The same fields are declared, each with the same level."""
    (entry,) = [one for one in load_json("registry/types.json")["types"] if one["type"] == kind]
    theirs = load_json(f"types/{entry['schema']}") if entry["schema"] else {}
    expected = dict(_fields(theirs, "x-aep-capture"))
    assert dict(_fields(payload(_SCHEMAS, kind), "x-capture")) == expected


@needs_upstream
def test_the_closed_words_are_those_of_the_registries() -> None:
    """Severities, levels and the reasons of a rejection."""
    envelope = _SCHEMAS["definitions"]["envelope"]["properties"]
    assert envelope["severity"]["enum"] == load_json("registry/severity.json")["order"]
    assert envelope["capture"]["enum"] == load_json("registry/capture.json")["order"]
    reasons = payload(_SCHEMAS, "control.rejected")["properties"]["reason"]["enum"]
    assert reasons == load_json("registry/nack-reasons.json")["reasons"]
