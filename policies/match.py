"""The attr-match filter of routes (AEP-0003 §6), over AEP and AHP events alike.

A filter is an object whose members must all match; `{}` matches everything. A value is a scalar
(exact JSON equality, no coercion), a non-empty list of scalars (any of them), on `type` also a
family such as `tool.*` (a strict prefix of whole segments), and on `severity` an object with `gte`
and/or `lte`. AEP attributes go by their names; the AHP attributes are `type`, `source`,
`harness.name` and `session.id`. An attribute that an event lacks matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from hookbus.policies.levels import LEVELS

Test = Callable[[Any], bool]

SEVERITIES: Final = ("debug", "info", "notice", "warning", "error", "critical")

_AEP_CORE: Final = frozenset(
    ("id", "type", "subject", "source", "agent", "session", "run", "step", "epoch", "cause",
     "severity", "capture")
)  # fmt: skip
_AEP_DEFAULTS: Final[Mapping[str, Any]] = {"severity": "info", "capture": "metadata", "epoch": 0}
_CLOSED: Final[Mapping[str, tuple[str, ...]]] = {"severity": SEVERITIES, "capture": LEVELS}
_NOT_FILTERABLE: Final = frozenset(("time", "seq", "aep", "traceparent", "data"))
_EXTENSION_NAME: Final = re.compile(r"[a-z0-9]{1,20}")
_FAMILY: Final = re.compile(r"([^.*]+(?:\.[^.*]+)*)\.\*")
_AHP_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "type": ("type",),
    "source": ("source",),
    "harness.name": ("harness", "name"),
    "session.id": ("session", "id"),
}


class InvalidFilter(ValueError):  # noqa: N818 - the refusal code is `invalid-filter`
    """A filter outside the grammar; the text names the member, and says what is wrong with it."""


class _Condition(Struct, frozen=True):
    attribute: str
    test: Test


class Filter(Struct, frozen=True):
    """A compiled filter."""

    conditions: tuple[_Condition, ...]

    def matches(self, event: Mapping[str, Any]) -> bool:
        """Whether the event, a JSON object that need not be valid, passes."""
        if not self.conditions:
            return True
        is_aep = "aep" in event and not isinstance(event.get("harness"), Mapping)
        read = _aep_attribute if is_aep else _ahp_attribute
        return all(
            condition.test(read(event, condition.attribute)) for condition in self.conditions
        )


def compile_filter(match: Any) -> Filter:
    """Raises InvalidFilter at the first member outside the grammar (AEP-0003 §6.2)."""
    if not isinstance(match, Mapping):
        raise InvalidFilter("a filter is an object")
    return Filter(tuple(_condition(name, wanted) for name, wanted in match.items()))


def _condition(name: Any, wanted: Any) -> _Condition:
    if not isinstance(name, str) or not _filterable(name):
        raise InvalidFilter(f"{name}: not an attribute to filter on")
    if name == "severity" and isinstance(wanted, Mapping):
        return _Condition(name, _severity_range(wanted))
    alternatives = wanted if isinstance(wanted, list) else [wanted]
    if not alternatives:
        raise InvalidFilter(f"{name}: an empty list would match nothing")
    return _Condition(name, _any_of([_alternative(name, value) for value in alternatives]))


def _filterable(name: str) -> bool:
    if name in _NOT_FILTERABLE:
        return False
    return name in _AEP_CORE or name in _AHP_PATHS or _EXTENSION_NAME.fullmatch(name) is not None


def _any_of(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda value: any(test(value) for test in tests)


def _alternative(name: str, wanted: Any) -> Test:
    if isinstance(wanted, (bool, int)):
        return _equal(wanted)
    if not isinstance(wanted, str):
        raise InvalidFilter(f"{name}: a value is a string, an integer or a boolean")
    if "*" in wanted:
        return _family(name, wanted)
    if wanted not in _CLOSED.get(name, (wanted,)):
        raise InvalidFilter(f"{name}: unknown level")
    return _equal(wanted)


def _equal(wanted: str | int | bool) -> Test:
    kind = type(wanted)
    return lambda value: type(value) is kind and value == wanted


def _family(name: str, wanted: str) -> Test:
    family = _FAMILY.fullmatch(wanted)
    if name != "type" or family is None:
        raise InvalidFilter(f"{name}: `*` is only allowed as the end of a type family (`tool.*`)")
    prefix = family.group(1) + "."
    return lambda value: isinstance(value, str) and value.startswith(prefix) and value != prefix


def _severity_range(wanted: Mapping[Any, Any]) -> Test:
    if not wanted or not set(wanted) <= {"gte", "lte"}:
        raise InvalidFilter("severity: needs gte or lte, and nothing else")
    for level in wanted.values():
        if level not in SEVERITIES:
            raise InvalidFilter("severity: unknown level")
    low = SEVERITIES.index(wanted.get("gte", SEVERITIES[0]))
    high = SEVERITIES.index(wanted.get("lte", SEVERITIES[-1]))
    allowed = frozenset(SEVERITIES[low : high + 1])
    return lambda value: isinstance(value, str) and value in allowed


def _aep_attribute(event: Mapping[str, Any], name: str) -> Any:
    return event.get(name, _AEP_DEFAULTS.get(name))


def _ahp_attribute(event: Mapping[str, Any], name: str) -> Any:
    value: Any = event
    for step in _AHP_PATHS.get(name, ()):
        value = value.get(step) if isinstance(value, Mapping) else None
    return None if value is event else value
