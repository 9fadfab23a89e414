"""Why bytes are not strict JSON. Runs for refused input only, on the slow and tolerant parser of
the standard library, so that the verdict depends on no parser's messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import accumulate, takewhile
from math import isinf
from typing import Any, NoReturn

from hookbus.codecs.verdict import Refusal

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP = [0] * 256
_STEP[ord("[")] = _STEP[ord("{")] = 1
_STEP[ord("]")] = _STEP[ord("}")] = -1


def nesting(raw: bytes) -> int:
    """How many containers are around the innermost one: 0 for a root that holds none. Strings
    don't count. For text that isn't JSON it is the deepest that brackets open. Linear time."""
    brackets = _STRING.sub(b"", raw).translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=1) - 1


def diagnose(raw: bytes, max_depth: int, names: AbstractSet[str]) -> Refusal:
    """The verdict on bytes that a strict parser refused. Order: see `hookbus.codecs.strict`."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return Refusal("invalid_utf8")
    if nesting(raw) > max_depth:
        return Refusal("too_deep")
    reader = _Reader()
    try:
        tree = reader.read(text)
    except RecursionError:  # the caller's own stack is nearly full
        return Refusal("too_deep")
    except ValueError:
        return Refusal("invalid_json")
    if _has_lone_surrogate(tree):
        return Refusal("invalid_utf8")
    if reader.repeated:
        return Refusal("duplicate_key", _repetition(tree, names))
    if reader.out_of_range:
        return Refusal("number_range")
    return Refusal("invalid_json")


class _Repeated(dict[str, Any]):
    """An object of which a key was repeated."""

    key: str


class _Reader:
    """Reads JSON that may have repeated keys and numbers out of range, and notes both."""

    def __init__(self) -> None:
        self.repeated = False
        self.out_of_range = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._number,
            parse_float=self._number,
            parse_constant=_refuse,
        )

    def read(self, text: str) -> Any:
        return self._decoder.decode(text)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(tree := dict(pairs)) == len(pairs):
            return tree
        self.repeated = True
        repeated = _Repeated(tree)
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                repeated.key = key
                break
            seen.add(key)
        return repeated

    def _number(self, text: str) -> int:
        self.out_of_range = self.out_of_range or isinf(float(text))
        return 0


def _refuse(constant: str) -> NoReturn:
    raise ValueError("NaN and the infinities are not JSON")


def _has_lone_surrogate(tree: Any) -> bool:
    try:
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _repetition(tree: Any, names: AbstractSet[str]) -> str:
    """The JSON Pointer of the first repeated key, cut before the first member not in `names`."""
    for node, path in _walk(tree, ()):
        if isinstance(node, _Repeated):
            steps = (*path, node.key)
            named = takewhile(lambda step: isinstance(step, int) or step in names, steps)
            return "".join(f"/{step}" for step in named)
    return ""


def _walk(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[Any, tuple[str | int, ...]]]:
    """Every object and array with its path, outer ones first; as deep as the limits let it be."""
    yield node, path
    children = node.items() if isinstance(node, dict) else enumerate(node)
    for step, child in children:
        if isinstance(child, (dict, list)):
            yield from _walk(child, (*path, step))
