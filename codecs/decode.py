"""Bytes to an event, or to the reason why they are none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hookbus.codecs.aep import AepJudge
from hookbus.codecs.ahp import WRAPPERS, Judge
from hookbus.codecs.carried import (
    Carried,
    carries,
    disagreement,
    moved,
    unwrap,
    unwrap_binary,
)
from hookbus.codecs.event import Event, Protocol
from hookbus.codecs.strict import Limits, parse
from hookbus.codecs.trace_context import of_attributes
from hookbus.codecs.verdict import Refusal
from hookbus.schemas.loader import load, load_aep

_UNKNOWN = Refusal("unknown_protocol")


class Decoder:
    """Decodes and validates values: a bare AHP event, a JSON-RPC `hooks/observe` or
    `hooks/intercept` message, an AEP event, or a structured CloudEvent of an AHP or AEP event. The
    kind is told from the value's members alone.

    Construction takes tens of milliseconds; see `hookbus.codecs.ahp.Judge` for its self-test.
    """

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        ahp, aep = load(), load_aep()
        self._limits = limits
        self._judge = Judge(ahp)
        self._aep = AepJudge(aep)
        self._names = frozenset(_names(ahp)).union(_names(aep))

    def decode(self, value: bytes, protocol: Protocol | None = None) -> Event | Refusal:
        """The event in `value`, or why it is refused. Never raises for any bytes. With `protocol`
        the value is taken to be of that one, whatever its members say."""
        tree = parse(value, self._limits, self._names)
        if isinstance(tree, Refusal):
            return tree
        if not isinstance(tree, dict):
            return _UNKNOWN
        inside = carries(tree)
        if inside is not None and protocol in (None, inside):
            return self._carried(unwrap(tree, value))
        match protocol or protocol_of(tree):
            case "aep":
                return self._aep_event(tree, value)
            case "ahp" if "jsonrpc" in tree and not ("harness" in tree and "type" in tree):
                return self._message(tree, value)
            case "ahp":
                return self._event(tree, value)
        return _UNKNOWN

    def decode_binary(self, attributes: dict[str, Any], value: bytes | None) -> Event | Refusal:
        """The event in a binary CloudEvent: its attributes (of
        `hookbus.codecs.carried.binary_attributes`), and the value of its record."""
        data = None if value is None else parse(value, self._limits, self._names)
        if isinstance(data, Refusal):
            return data
        return self._carried(unwrap_binary(attributes, data, value))

    def _carried(self, carried: Carried | Refusal) -> Event | Refusal:
        if isinstance(carried, Refusal):
            return carried
        judge = self._aep_event if carried.protocol == "aep" else self._event
        event = judge(carried.tree, carried.raw)
        if isinstance(event, Refusal):
            return moved(event, carried.protocol)
        if carried.protocol == "aep":
            return replace(event, dropped=carried.dropped) if carried.dropped else event
        fault = disagreement(carried, event)
        return replace(event, trace=of_attributes(carried.attributes)) if fault is None else fault

    def _aep_event(self, tree: dict[str, Any], raw: bytes) -> Event | Refusal:
        return self._aep.event(tree, raw) or _aep(tree, raw)

    def _event(self, tree: dict[str, Any], raw: bytes) -> Event | Refusal:
        judged = self._judge.event(tree, raw)
        return judged if isinstance(judged, Refusal) else _ahp(tree, raw, judged)

    def _message(self, tree: dict[str, Any], raw: bytes) -> Event | Refusal:
        method = tree.get("method")
        if not isinstance(method, str) or method not in WRAPPERS:
            return _UNKNOWN
        carried = self._judge.message(tree, raw)
        if isinstance(carried, Refusal):
            return carried
        return _ahp(carried.tree, carried.raw, carried.struct)


def protocol_of(tree: dict[str, Any]) -> Protocol | None:
    """The protocol whose event, or message with an event, an object claims to be.

    An AHP event has a `harness`, and may have members of any other name besides. An extension
    attribute of AEP may be named `harness` too, but is never an object.
    """
    if "aep" in tree and not isinstance(tree.get("harness"), dict):
        return "aep"
    if "harness" in tree and ("type" in tree or "jsonrpc" not in tree):
        return "ahp"
    if "aep" in tree or "specversion" in tree:  # a CloudEvent of something else
        return None
    return "ahp" if "jsonrpc" in tree or isinstance(tree.get("type"), str) else None


def _aep(tree: dict[str, Any], raw: bytes) -> Event:
    return Event(
        "aep",
        tree["type"],
        tree["source"],
        tree["id"],
        tree["time"],
        tree,
        raw,
        trace=of_attributes(tree) if "traceparent" in tree else None,
    )


def _ahp(tree: dict[str, Any], raw: bytes, struct: Struct | None) -> Event:
    return Event(
        "ahp",
        tree["type"],
        tree["source"],
        tree["id"],
        tree["time"],
        tree,
        raw,
        0,
        None,
        struct,
    )


def _names(node: Any) -> Iterator[str]:
    """Every member name that the schemas name."""
    if isinstance(node, dict):
        yield from node.get("properties", ())
        for child in node.values():
            yield from _names(child)
    elif isinstance(node, list):
        for child in node:
            yield from _names(child)
