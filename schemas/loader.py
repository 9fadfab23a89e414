"""The shapes of AHP events: JSON Schema (draft-07) documents, and what is in them for capture.

`ahp/*.json` hold `definitions` by subject; a definition is named once in all of them. An event's
definition is named by its type. Every property of an event carries `x-capture`, on itself or on
the definition that it refers to (its own wins): `structural`, `token`, `text`, `opaque`, `path`,
`identity` or `part`. `x-capture-keep` lists the texts that are tokens after all; `x-gaps` marks
an object that notes its own withheld members in its `gaps`.

`aep/*.json` hold the envelope of AEP 0.1 and the payloads of its registered types, in the same way.
There `x-capture` is the level (`metadata`, `redacted` or `full`) that a member of `data` needs, and
`x-degrade` marks a member that needs `metadata` and says less there than above: a `prompt`, a
`label`, or the `values` of a form.

`mcp/elicitation.json` holds the shapes of what an elicitation event carries as text. It has no
capture classes: what stays of a body is decided from the form itself (`hookbus.policies.forms`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

# not importlib.resources: it refuses the folder in an editable install, where the package is a
# namespace with a second, virtual location
_FOLDER = Path(__file__).parent
_AEP = ("envelope", "common", "session", "tool", "attention", "resource", "agent")
_AEP_SCOPES = ("agent", "foreign", "ordinary")
_SUBJECTS = ("common", "content", "execution", "capabilities", "wrapper")
_EVENTS = ("session", "model", "tool", "change", "user")


def load() -> Schema:
    """All documents in one: `{"$schema": …, "definitions": {name: schema}}`, references made
    local (`#/definitions/NAME`). Reads the files again at each call; the caller keeps the result.
    """
    return _joined("ahp", *_SUBJECTS, *_EVENTS)


def load_registration() -> Schema:
    """The shapes of a registration document, in the form of `load`'s. They are no part of it,
    because a registration is no event: its members have no capture class."""
    return _joined("ahp", "registration")


def load_aep() -> Schema:
    """The shapes of AEP 0.1 events, in the form of `load`'s: a definition for each registered type
    and `unregistered` for all others. An event's payload is its member `data`, which is open."""
    return _joined("aep", *_AEP)


def _joined(folder: str, *names: str) -> Schema:
    definitions: Schema = {}
    for name in names:
        for key, schema in _read(f"{folder}/{name}")["definitions"].items():
            if key in definitions:
                raise ValueError(f"two documents define {key}")
            definitions[key] = schema
    return {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": definitions}


def load_elicitation() -> Schema:
    """The document of MCP elicitation bodies; its definitions `request` (the params) and `result`
    are the whole bodies. Read again at each call."""
    return _read("mcp/elicitation")


def event_types(schemas: Schema) -> tuple[str, ...]:
    """The types of AHP events that `schemas` (from `load`) define, in order of definition."""
    envelope = reference("envelope")
    return tuple(
        name
        for name, schema in schemas["definitions"].items()
        if envelope in schema.get("allOf", ())
    )


def aep_types(schemas: Schema) -> tuple[str, ...]:
    """The registered types of AEP that `schemas` (from `load_aep`) define, in order of
    definition."""
    scopes = [reference(scope) for scope in _AEP_SCOPES]
    return tuple(
        name
        for name, schema in schemas["definitions"].items()
        if any(scope in schema.get("allOf", ()) for scope in scopes)
    )


def payload(schemas: Schema, kind: str) -> Schema:
    """The schema of a registered type's `data`."""
    found: Schema = schemas["definitions"][kind]["properties"]["data"]
    return found


def reference(name: str) -> Schema:
    """The reference to a definition of `load`'s document."""
    return {"$ref": f"#/definitions/{name}"}


def target(schemas: Schema, schema: Schema) -> Schema:
    """What a reference refers to, or the schema itself if it is none."""
    while "$ref" in schema:
        schema = schemas["definitions"][schema["$ref"].rpartition("/")[2]]
    return schema


def _read(name: str) -> Schema:
    text = _FOLDER.joinpath(f"{name}.json").read_text(encoding="utf-8")
    document: Schema = json.loads(text, object_hook=_localized)
    return document


def _localized(node: Schema) -> Schema:
    """A reference into another document, pointing into the one that holds them all."""
    if "$ref" in node:
        return {"$ref": "#" + node["$ref"].partition("#")[2]}
    return node
