"""Bytes to a tree: what is refused, with which code, and that nothing is slow or raises."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.codecs.strict import Limits, encode, parse
from hookbus.codecs.verdict import Refusal

_MIB = 1024 * 1024
_LIMITS = Limits()
_ACCENT = "\u00e9"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'{"a":"\xfc"}', "invalid_utf8"),
        (b'"\xed\xa0\x80"', "invalid_utf8"),
        (b'"\xc0\x80"', "invalid_utf8"),
        (b'"\xf4\x90\x80\x80"', "invalid_utf8"),
        (rb'"\ud800"', "invalid_utf8"),
        (rb'{"a":["\udc00x"]}', "invalid_utf8"),
        (rb'{"\ud800":1}', "invalid_utf8"),
        (rb'"\ud800\u0041"', "invalid_utf8"),
        (b"", "invalid_json"),
        (b" \n", "invalid_json"),
        (b"\xef\xbb\xbf{}", "invalid_json"),
        (b"\x00", "invalid_json"),
        (b"{} {}", "invalid_json"),
        (b"{}x", "invalid_json"),
        (b"[1,]", "invalid_json"),
        (b"{'a':1}", "invalid_json"),
        (b'{"a":1', "invalid_json"),
        (b'"a\x01"', "invalid_json"),
        (b"01", "invalid_json"),
        (b"+1", "invalid_json"),
        (b"NaN", "invalid_json"),
        (b'{"a":-Infinity}', "invalid_json"),
        (b'{"a":1,"a":1}', "duplicate_key"),
        (b'{"a": 1, "a": 1}', "duplicate_key"),
        (rb'[{"b":{"a":1,"\u0061":2}}]', "duplicate_key"),
        (b"1e400", "number_range"),
        (b"-1e400", "number_range"),
        (b"[1.7976931348623159e308]", "number_range"),
        (b"1" + b"0" * 400, "number_range"),
        (b"9" * 5000, "number_range"),
        (b"[" * 130 + b"]" * 130, "too_deep"),
        (b"[" * 100_000, "too_deep"),
        (b'{"a":' * 1025 + b"1" + b"}" * 1025, "too_deep"),
    ],
)
def test_each_fault_has_its_code(raw: bytes, code: str) -> None:
    """Input that is not strict JSON is refused with the code of its fault."""
    verdict = parse(raw, _LIMITS)
    assert isinstance(verdict, Refusal)
    assert verdict.code == code


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'"\xff' + b"x" * 100, "too_large"),
        (b"\xff" + b"[" * 20, "invalid_utf8"),
        (b"[" * 20, "too_deep"),
        (rb'{"a":"\ud800","a":1e400', "invalid_json"),
        (rb'{"a":"\ud800","b":1,"b":1e400}', "invalid_utf8"),
        (b'{"a":1e400,"a":1}', "duplicate_key"),
    ],
)
def test_the_first_fault_in_the_documented_order_decides(raw: bytes, code: str) -> None:
    """Of several faults, the verdict names the first in the order that the module documents."""
    verdict = parse(raw, Limits(max_bytes=50, max_depth=8))
    assert isinstance(verdict, Refusal)
    assert verdict.code == code


@pytest.mark.parametrize(
    "raw",
    [
        b"1.7976931348623157e308",
        b"-0",
        b"5e-324",
        b"1e-400",
        b"18446744073709551615",
        b"18446744073709551616",
        b"-9223372036854775809",
        b"123456789012345678901234567890123456789012345678901234567890",
        rb'"\ud83d\ude00 \u0000 \/"',
        b' { "a" : [ 1 , 2.50 , true , null , "x" ] } ',
        b'[{"a":1},{"a":2}]',
    ],
)
def test_the_tree_is_what_the_bytes_say(raw: bytes) -> None:
    """Accepted input gives exactly the values that the standard library reads, with their types."""
    tree = parse(raw, _LIMITS)
    assert (tree, type(tree)) == (json.loads(raw), type(json.loads(raw)))


def test_integers_are_not_rounded_in_any_spelling() -> None:
    """An integer beyond 64 bits stays the same integer, among blanks and escapes too."""
    big = 2**64 + 1
    for raw in (f'{{"a":{big}}}', f'{{"a": {big}}}', rf'{{"\u0061": {big}}}'):
        assert parse(raw.encode(), _LIMITS) == {"a": big}
    assert encode({"a": big, "b": _ACCENT}) == f'{{"a":{big},"b":"{_ACCENT}"}}'.encode()


def test_depth_counts_containers_below_the_root() -> None:
    """128 arrays below the root are accepted, 129 aren't; brackets in strings don't count."""
    at_limit = b'{"a":' + b"[" * 128 + b"]" * 128 + b"}"
    assert isinstance(parse(at_limit, _LIMITS), dict)
    assert parse(b"[" + at_limit + b"]", _LIMITS) == Refusal("too_deep")
    text = "[{" * 1000 + '"' + "\\"
    assert parse(json.dumps({"a": text}).encode(), _LIMITS) == {"a": text}
    assert isinstance(parse(b"[" + b"[]," * 5000 + b"{}]", _LIMITS), list)
    assert parse(b"1", Limits(max_depth=0)) == 1


def test_a_full_stack_of_the_caller_is_survived() -> None:
    """No RecursionError escapes, however little stack is left."""

    def descend(levels: int) -> Any:
        if levels:
            return descend(levels - 1)
        return [parse(b"[" * 100 + b"]" * 100, _LIMITS), parse(b"[" * 100 + b"}", _LIMITS)]

    good, bad = descend(800)
    assert isinstance(good, list)
    assert isinstance(bad, Refusal)


def test_a_repeated_key_is_named_only_if_a_schema_names_it() -> None:
    """The path of a repeated key ends before the first member that isn't in the given names."""
    raw = b'{"items":[{},{"parts":{"secret":1,"secret":2}}]}'
    assert parse(raw, _LIMITS, {"items"}) == Refusal("duplicate_key", "/items/1")
    assert parse(raw, _LIMITS, {"items", "parts"}) == Refusal("duplicate_key", "/items/1/parts")
    assert parse(b'{"type":1,"type":2}', _LIMITS, {"type"}) == Refusal("duplicate_key", "/type")
    assert parse(raw, _LIMITS) == Refusal("duplicate_key", "")


@pytest.mark.parametrize(
    "raw",
    [
        b"[" + b"[]," * (_MIB * 4 // 3 - 2) + b"[]]",
        b"[" * (4 * _MIB),
        b'{"a":' * (_MIB * 4 // 5),
        b'"' * (4 * _MIB),
        b'"' + b"\\" * (4 * _MIB - 1),
        b"1" * (4 * _MIB),
        b"1." + b"1" * (4 * _MIB - 2),
        b"[" + b"1e999," * (_MIB * 4 // 6 - 2) + b"1]",
        b"{" + b'"a":1,' * (_MIB * 4 // 6 - 2) + b'"a":1}',
        b"[" + b'{"a":1,"a":2},' * (_MIB * 4 // 14 - 2) + b"{}]",
    ],
    ids=[
        "wide",
        "deep",
        "nested",
        "quotes",
        "escapes",
        "digits",
        "decimals",
        "ranges",
        "same",
        "dup",
    ],
)
def test_hostile_input_takes_linear_time(raw: bytes) -> None:
    """4 MiB made to hurt a parser are judged in seconds, not minutes."""
    assert len(raw) <= _LIMITS.max_bytes
    start = time.process_time()
    parse(raw, _LIMITS)
    assert time.process_time() - start < 8


def test_limits_that_the_parsers_cannot_keep_are_refused() -> None:
    """A depth that the parsers don't reach, or no bytes at all, is a mistake of the caller."""
    for wrong in ({"max_depth": 191}, {"max_depth": -1}, {"max_bytes": 0}):
        with pytest.raises(ValueError, match="limits"):
            Limits(**wrong)


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(tree=_json, ascii_only=st.booleans(), indent=st.sampled_from([None, 0, 2]))
def test_what_is_written_is_read_back(tree: Any, ascii_only: bool, indent: int | None) -> None:
    """Any JSON value survives `encode` and `parse`, and `parse` reads other writers' spellings."""
    raw = encode(tree)
    assert parse(raw, _LIMITS) == tree
    assert json.loads(raw) == tree
    spelled = json.dumps(tree, ensure_ascii=ascii_only, indent=indent).encode()
    assert repr(parse(spelled, _LIMITS)) == repr(tree)


@settings(deadline=None)
@given(
    raw=st.binary(max_size=40)
    | st.text(alphabet='{}[]",:\\ue019.-aN \n', max_size=30).map(str.encode)
)
def test_accepted_bytes_mean_the_same_to_the_standard_library(raw: bytes) -> None:
    """Nothing is accepted that the standard library refuses or reads as something else, and
    nothing is refused as bad JSON that it reads without a fault."""
    verdict = parse(raw, _LIMITS)
    reading = _reading(raw)
    if isinstance(verdict, Refusal):
        assert reading is None
    else:
        assert reading == [verdict]


def _reading(raw: bytes) -> list[Any] | None:
    """What the standard library reads, in a list; None if it is no strict JSON."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    def finite(text: str) -> float:
        if math.isinf(float(text)):
            raise ValueError
        return float(text)

    def refuse(_: str) -> None:
        raise ValueError

    try:
        tree = json.loads(
            raw.decode(), object_pairs_hook=unique, parse_float=finite, parse_constant=refuse
        )
        json.dumps(tree, ensure_ascii=False).encode()
    except ValueError:
        return None
    return [tree]
