"""Bytes to a JSON tree, strictly: everything that two parsers could read differently is refused.

Refused are bytes that are not UTF-8, escapes of lone surrogates, anything that is not one JSON
value, repeated keys at any depth, numbers beyond an IEEE double (RFC 8259 §6), and values above
the limits. Integers stay exact, at whatever size.

When several faults are in one value, the verdict is the first of: `too_large`, `invalid_utf8`
(bytes), `too_deep`, `invalid_json`, `invalid_utf8` (escapes), `duplicate_key`, `number_range`.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from typing import Any

import jiter
import msgspec
import orjson
from msgspec import Struct

from hookbus.codecs.diagnosis import diagnose, nesting
from hookbus.codecs.verdict import Refusal

_DEEPEST = 190
"""The deepest limit that all parsers used here keep to."""


class Limits(Struct, frozen=True):
    """What a value may be at most. `max_bytes` is its length as it came; `max_depth` counts the
    objects and arrays around the innermost one, at most 190: 0 allows a root that holds none."""

    max_bytes: int = 4 * 1024 * 1024
    max_depth: int = 128

    def __post_init__(self) -> None:
        if self.max_bytes < 1 or not 0 <= self.max_depth <= _DEEPEST:
            raise ValueError(f"limits: max_bytes is at least 1, max_depth from 0 to {_DEEPEST}")


def parse(raw: bytes, limits: Limits, names: AbstractSet[str] = frozenset()) -> Any | Refusal:
    """The JSON tree of `raw`, or why there is none. The tree holds dict, list, str, int, float,
    bool and None. `names` are the member names that the path of a repeated key may show."""
    if len(raw) > limits.max_bytes:
        return Refusal("too_large")
    try:
        # every container opens with one of these, so fewer of them can't nest deeper
        if raw.count(b"{") + raw.count(b"[") > limits.max_depth and (
            nesting(raw) > limits.max_depth
        ):
            return diagnose(raw, limits.max_depth, names)
        return _parsed(raw)
    except (ValueError, RecursionError):
        return diagnose(raw, limits.max_depth, names)


def encode(tree: Any) -> bytes:
    """`tree` as compact JSON in UTF-8, members in their order; integers of any size stay exact."""
    try:
        return orjson.dumps(tree)
    except TypeError:  # an integer beyond 64 bits
        text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()


def _parsed(raw: bytes) -> Any:
    """Raises ValueError or RecursionError for input that is not strict JSON.

    orjson refuses all but two faults: it keeps the last of repeated keys, and rounds integers
    beyond 64 bits. If its serialization of what it read is the input, up to the blanks between
    tokens, there was neither. That proves most input for less than jiter takes, which sees
    repeated keys and keeps integers, and which decides the rest.
    """
    tree = orjson.loads(raw)
    compact = orjson.dumps(tree)
    if compact == raw or (
        len(compact) < len(raw) and compact == msgspec.json.format(raw, indent=-1)
    ):
        return tree
    return jiter.from_json(raw, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")
