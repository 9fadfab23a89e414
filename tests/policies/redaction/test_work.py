"""The work on a hostile text is linear in its length, shown by how the patterns are made.

A time would tell of the machine, so none is measured. A regular expression takes more than linear
time in two ways: it goes back over what it repeated, or it starts again inside of a run that it has
read to the end and then fails. The first can't happen where whatever is repeated without bound is
possessive; the second where nothing that follows such a repetition can fail, or where the pattern
can't start inside of the run.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from hookbus.policies import redaction
from hookbus.policies.redaction.quoted import bracketed, extent

LONGEST = 512
"""The most characters that a bounded repetition may read, however it is nested."""


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every compiled pattern of the package, with its name."""
    for module in pkgutil.iter_modules(redaction.__path__):
        loaded = importlib.import_module(f"{redaction.__name__}.{module.name}")
        for name, value in vars(loaded).items():
            for found in _within(value):
                yield f"{module.name}.{name} {found.pattern[:40]}", found


def _within(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | dict):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _within(member)


ALL = dict(patterns())


def _repeats(parsed: Any, around: int = 1) -> Iterator[tuple[bool, int]]:
    """Of each repetition, whether it is possessive, and how much it may read; -1 without bound."""
    for code, arguments in parsed:
        inner = around
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            most = arguments[1]
            bounded = most is not codes.MAXREPEAT
            inner = around * max(most, 1) if bounded else around
            yield code is codes.POSSESSIVE_REPEAT, inner if bounded else -1
        for argument in arguments if isinstance(arguments, tuple | list) else ():
            for part in argument if isinstance(argument, list) else [argument]:
                if isinstance(part, parser.SubPattern):
                    yield from _repeats(part, inner)


def _may_fail_after_a_run(parsed: Any) -> bool:
    """Whether something that can fail comes after a repetition without bound."""
    ran = False
    for code, arguments in parsed:
        if ran and not _always_matches(code, arguments):
            return True
        if code is codes.POSSESSIVE_REPEAT and arguments[1] is codes.MAXREPEAT:
            ran = True
        for argument in arguments if isinstance(arguments, tuple | list) else ():
            for part in argument if isinstance(argument, list) else [argument]:
                if isinstance(part, parser.SubPattern) and code is not codes.ASSERT_NOT:
                    if _may_fail_after_a_run(part):
                        return True
                    ran = ran or any(bound == -1 for _, bound in _repeats(part))
    return False


def _always_matches(code: Any, arguments: Any) -> bool:
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return bool(arguments[0] == 0)
    if code is codes.SUBPATTERN:
        return all(_always_matches(*step) for step in arguments[3])
    return False


@pytest.mark.parametrize("name", ALL)
def test_no_pattern_goes_back_over_more_than_a_bounded_stretch(name: str) -> None:
    """What is repeated without bound is possessive."""
    for possessive, bound in _repeats(parser.parse(ALL[name].pattern)):
        assert possessive if bound == -1 else bound <= LONGEST


STARTS_ONCE = {
    "tokens._COMPILED (?<![\\w-])eyJ": "a run of the same characters has one start",
    "tokens._COMPILED (?<![A-Za-z0-9])SG": "the run ends at a dot, and the next needs another",
    "people._EMAIL": "a run of the same characters has one start",
    "quoted._QUOTES": "a run of backslashes, followed by a mark or read on from there",
    "quoted._BRACKETS": "within a bounded stretch",
    "assignments._START": "within a bounded stretch",
    "assignments._USER": "not after a space, and what is between the two is bounded",
    "assignments._DIGEST": "tried at one place",
    "assignments._ONE_TOKEN": "tried at one place",
    "assignments._LINE": "tried at one place",
    "tokens._DIGEST": "tried at one place",
    "assignments._REFERENCE": "tried at one place",
    "assignments._WORDS": "tried at one place",
    "tokens._PLAIN": "tried at one place",
    "quoted._BARE": "tried at one place",
    "trees._FLAG": "tried at one place",
}
"""Patterns in which something may fail after a run, and why that is harmless."""


@pytest.mark.parametrize("name", ALL)
def test_no_pattern_reads_a_run_again_from_inside(name: str) -> None:
    """Nothing can fail after a repetition without bound, but for those whose reason is known."""
    if _may_fail_after_a_run(parser.parse(ALL[name].pattern)):
        assert any(name.startswith(known) for known in STARTS_ONCE)


@pytest.mark.parametrize("opening", ['"', "'", "`", '\\"', '\\\\\\"'])
def test_a_quotation_that_has_no_end_takes_its_line(opening: str) -> None:
    """So the search for the next one starts behind it, and nothing is read twice."""
    text = opening + "a " * 5_000
    found = extent(text + "\nnext", 0)
    assert found is not None
    assert found.end == len(text)


def test_a_bracket_that_has_no_end_takes_what_was_read() -> None:
    """However long the rest is."""
    assert bracketed("[" * 100_000, 0) == bracketed("[" * 10_000, 0) > 1_000
