"""Bytes to an event, or to the reason why they are none (DESIGN §5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hookbus.codecs.ahp import WRAPPERS, Judge
from hookbus.codecs.event import Event
from hookbus.codecs.strict import Limits, parse
from hookbus.codecs.verdict import Refusal
from hookbus.schemas.loader import load

_UNKNOWN = Refusal("unknown_protocol")


class Decoder:
    """Decodes and validates values: a bare AHP event, or a JSON-RPC `hooks/observe` or
    `hooks/intercept` message. The kind is told from the value's members alone.

    Construction takes tens of milliseconds; see `hookbus.codecs.ahp.Judge` for its self-test.
    """

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        schemas = load()
        self._limits = limits
        self._judge = Judge(schemas)
        self._names = frozenset(_names(schemas))

    def decode(self, value: bytes) -> Event | Refusal:
        """The event in `value`, or why it is refused. Never raises for any bytes."""
        tree = parse(value, self._limits, self._names)
        if isinstance(tree, Refusal):
            return tree
        if not isinstance(tree, dict):
            return _UNKNOWN
        # `harness` first: an AHP event has it, and may have members of any other name besides
        if "harness" in tree and ("type" in tree or "jsonrpc" not in tree):
            return self._event(tree, value)
        if "aep" in tree or "specversion" in tree:  # AEP and CloudEvents are decoded here, later
            return _UNKNOWN
        if "jsonrpc" in tree:
            return self._message(tree, value)
        return self._event(tree, value) if isinstance(tree.get("type"), str) else _UNKNOWN

    def _event(self, tree: dict[str, Any], raw: bytes) -> Event | Refusal:
        return self._judge.event(tree, raw) or _ahp(tree, raw)

    def _message(self, tree: dict[str, Any], raw: bytes) -> Event | Refusal:
        method = tree.get("method")
        if not isinstance(method, str) or method not in WRAPPERS:
            return _UNKNOWN
        inside = self._judge.message(tree, raw)
        return inside if isinstance(inside, Refusal) else _ahp(tree["params"]["event"], inside)


def _ahp(tree: dict[str, Any], raw: bytes) -> Event:
    session = tree.get("session")
    return Event(
        "ahp",
        tree["type"],
        tree["source"],
        tree["id"],
        tree["time"],
        session["id"] if session else None,
        tree["harness"]["name"],
        tree,
        raw,
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
