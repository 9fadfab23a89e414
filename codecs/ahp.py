"""The verdict on an AHP event, or on the JSON-RPC message that carries one.

It equals the verdict of the official validator (PyPI `agenthooksprotocol` 0.10.1), except:

- a trailing newline is refused wherever a format or a pattern ends the text: dates, URIs,
  currencies, names of extensions and effects;
- a leap second is accepted (`hookbus.codecs.formats`);
- an intercept request whose id is not its event's id is refused.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from hookbus.codecs.compiled import Compiled
from hookbus.codecs.formats import is_date_time, is_uri, remembering
from hookbus.codecs.slots import Slots, values_at
from hookbus.codecs.typed import Types
from hookbus.codecs.verdict import Refusal
from hookbus.schemas.loader import Schema, event_types, reference

WRAPPERS = {"hooks/observe": "observe", "hooks/intercept": "intercept"}
"""The JSON-RPC methods that carry an event, and the definitions of their messages."""

_EVENT = "/params/event"
_PENDING = "ahp:owned:pending"
"""The reference of an attachment that its harness has not uploaded; never on the wire."""


class _Params(Struct):
    event: Raw


class _Message(Struct):
    params: _Params


class Message(Struct, frozen=True):
    """The event in a valid message: its tree, its bytes, and its derived type if that took it."""

    tree: dict[str, Any]
    raw: bytes
    struct: Struct | None


class Judge:
    """Judges AHP values. Construction takes tens of milliseconds, and raises RuntimeError if a
    bad date or URI would pass: then no verdict of this process could be relied on."""

    def __init__(self, schemas: Schema) -> None:
        formats = {"uri": remembering(is_uri), "date-time": is_date_time}
        types = Types(schemas, formats)
        self._compiled = Compiled(schemas, formats)
        self._decoders = {
            name: msgspec.json.Decoder(types.of(reference(name))) for name in event_types(schemas)
        }
        self._wrappers = {
            name: msgspec.json.Decoder(types.of(reference(name))) for name in WRAPPERS.values()
        }
        self._slots: dict[str, Slots] = {}
        self._schemas = schemas
        self._messages = msgspec.json.Decoder(_Message)
        self._test_itself()

    def event(self, tree: dict[str, Any], raw: bytes) -> Struct | Refusal | None:
        """A valid event as its derived type, None if only the compiled schema accepts it; or why it
        is refused. `tree` is what `hookbus.codecs.strict.parse` read in `raw`; only then is the
        derived type's consent worth anything."""
        kind = tree.get("type")
        if not isinstance(kind, str):
            return Refusal("schema", "/type", "type") if "type" in tree else _TYPE_MISSING
        decoder = self._decoders.get(kind)
        if decoder is None:
            return Refusal("unsupported_type", "/type")
        try:
            struct: Struct = decoder.decode(raw)
        except msgspec.DecodeError:
            return self._compiled.check(kind, tree)
        return struct

    def message(self, tree: dict[str, Any], raw: bytes) -> Message | Refusal:
        """The event that a JSON-RPC message carries, or why there is none. The message's `method`
        is one of WRAPPERS."""
        wrapper = WRAPPERS[tree["method"]]
        params: Any = tree.get("params")
        event = params.get("event") if isinstance(params, dict) else None
        if not isinstance(event, dict):
            return self._compiled.check(wrapper, tree) or Refusal("schema", "/params", "type")
        inside = bytes(self._messages.decode(raw).params.event)
        judged = self.event(event, inside)
        if isinstance(judged, Refusal):
            return _moved(judged, _EVENT)
        verdict = self._wrapper(wrapper, tree, raw)
        if verdict is None and wrapper == "intercept":
            verdict = self._offer(tree["id"], event, params)
        return verdict or self._pending(event, inside) or Message(event, inside, judged)

    def _wrapper(self, name: str, tree: dict[str, Any], raw: bytes) -> Refusal | None:
        try:
            self._wrappers[name].decode(raw)
        except msgspec.DecodeError:
            return self._compiled.check(name, tree)
        return None

    def _offer(self, request: Any, event: dict[str, Any], params: dict[str, Any]) -> Refusal | None:
        """What the type of the event says of the rest of an intercept request."""
        if request != event["id"]:
            return Refusal("schema", "/id", "const")
        for member in ("capabilities", "state"):
            name = f"{member}.{event['type']}"
            if member in params and name in self._schemas["definitions"]:
                fault = self._compiled.check(name, params[member])
                if fault is not None:
                    return _moved(fault, f"/params/{member}")
        return None

    def _pending(self, event: dict[str, Any], raw: bytes) -> Refusal | None:
        if b"pending" not in raw and b"\\" not in raw:  # a backslash may spell it in escapes
            return None
        kind = event["type"]
        if kind not in self._slots:
            self._slots[kind] = Slots(self._schemas, kind)
        for part, pointer in values_at(event, self._slots[kind].parts):
            if part.get("body", {}).get("ref") == _PENDING:
                return Refusal("schema", f"{_EVENT}{pointer}/body/ref", "not")
        return None

    def _test_itself(self) -> None:
        event = {
            "id": "1",
            "source": "urn:hookbus:self-test",
            "type": "hook.failure",
            "time": "2026-02-28T00:00:00Z",
            "harness": {"name": "hookbus", "version": "1"},
            "parentEventId": "0",
            "failure": {"backendId": "hookbus", "reason": "timeout", "policy": "fail-open"},
        }
        bad = ({"time": "2026-02-29T00:00:00Z"}, {"time": "tomorrow"}, {"source": "a source"})
        for change in ({}, *bad):
            tree = {**event, **change}
            refused = isinstance(self.event(tree, msgspec.json.encode(tree)), Refusal)
            if refused != bool(change):
                raise RuntimeError("the validator fails its self-test: formats are not checked")


_TYPE_MISSING = Refusal("schema", "", "required")


def _moved(refusal: Refusal, pointer: str) -> Refusal:
    """The refusal of a value, as one of the value that holds it at `pointer`."""
    return Refusal(refusal.code, f"{pointer}{refusal.path or ''}", refusal.rule)
