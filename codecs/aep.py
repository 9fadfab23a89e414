"""The verdict on an AEP 0.1 event (AEP-0001 §5, AEP-0002 §5).

It is that of the official schemas of the envelope and of the type's payload, formats asserted, with
these deviations:

- a trailing newline is refused wherever a format or a pattern ends the text: `time`, `source`,
  `type`, `traceparent`, names of extension attributes;
- a leap second is accepted (`hookbus.codecs.formats`).

A type that is not registered is judged by its envelope alone, as AEP-0001 §6 lets known categories
grow. A type outside the grammar or the closed set of categories breaks the pattern of `type`
(code `schema`). Another version than 0.1 is another protocol (`unknown_protocol`, at `/aep`).
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Raw

from hookbus.codecs.compiled import Compiled
from hookbus.codecs.formats import is_date_time, is_uri, remembering
from hookbus.codecs.typed import Types
from hookbus.codecs.verdict import Refusal
from hookbus.schemas.loader import Schema, aep_types, target

VERSION: Final = "0.1"

_EXTENSION_NAME: Final = re.compile(r"[a-z0-9]{1,20}")
_TYPE_MISSING: Final = Refusal("schema", "", "required")


class AepJudge:
    """Judges AEP events against `schemas` (of `hookbus.schemas.loader.load_aep`). Construction
    takes tens of milliseconds, and raises RuntimeError if a bad date or URI would pass."""

    def __init__(self, schemas: Schema) -> None:
        formats = {"uri": remembering(is_uri), "date-time": is_date_time}
        types = Types(schemas, formats)
        self._compiled = Compiled(schemas, formats)
        self._decoders = {
            kind: msgspec.json.Decoder(types.of(_named(schemas, kind)))
            for kind in aep_types(schemas)
        }
        self._core = frozenset(schemas["definitions"]["envelope"]["properties"])
        self._test_itself()

    def event(self, tree: dict[str, Any], raw: bytes | Raw) -> Refusal | None:
        """The verdict. `tree` is what `hookbus.codecs.strict.parse` read in `raw`; only then is
        the derived type's consent worth anything."""
        version = tree.get("aep", VERSION)
        if isinstance(version, str) and version != VERSION:
            return Refusal("unknown_protocol", "/aep")
        kind = tree.get("type")
        if not isinstance(kind, str):
            return Refusal("schema", "/type", "type") if "type" in tree else _TYPE_MISSING
        decoder = self._decoders.get(kind)
        if decoder is None:
            return self._compiled.check("unregistered", tree)
        try:
            decoder.decode(raw)
        except msgspec.DecodeError:
            return self._compiled.check(kind, tree)
        if all(_is_extension(name, tree[name]) for name in tree.keys() - self._core):
            return None
        return self._compiled.check(kind, tree)

    def _test_itself(self) -> None:
        event = {
            "aep": VERSION,
            "id": "1",
            "type": "agent.presence",
            "time": "2026-02-28T00:00:00Z",
            "source": "urn:hookbus:self-test",
            "agent": "hookbus",
            "data": {"state": "online"},
        }
        bad = ({"time": "2026-02-29T00:00:00Z"}, {"time": "tomorrow"}, {"source": "a source"})
        for change in ({}, *bad):
            tree = {**event, **change}
            if (self.event(tree, msgspec.json.encode(tree)) is None) != (not change):
                raise RuntimeError("the validator fails its self-test: formats are not checked")


def _is_extension(name: str, value: Any) -> bool:
    """Whether a member is certainly a legal extension attribute (AEP-0001 §5.4)."""
    return isinstance(value, (str, int)) and _EXTENSION_NAME.fullmatch(name) is not None


def _named(schemas: Schema, kind: str) -> Schema:
    """What the schema of a type says of the members that it names, as one object schema; the
    members that it doesn't name are left to the judge."""
    own = schemas["definitions"][kind]
    scope = target(schemas, own["allOf"][0])
    envelope, narrowing = (target(schemas, branch) for branch in scope["allOf"])
    return {
        "type": "object",
        "required": [*envelope["required"], *narrowing.get("required", ())],
        "properties": {
            **envelope["properties"],
            **narrowing.get("properties", {}),
            **own["properties"],
        },
    }
