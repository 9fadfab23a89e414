"""The capture ladder: which level an event has, and which one its copy gets (AEP-0001 §8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, Final, Literal, get_args

from msgspec import Struct

Level = Literal["none", "metadata", "redacted", "full"]

LEVELS: Final[tuple[Level, ...]] = get_args(Level)

CAPTURE_EXTENSION: Final = "dev.hookbus.capture"
"""The AHP extension that declares a level: ``{"level": "metadata"}``."""

_RANK: Final[Mapping[str, int]] = {level: rank for rank, level in enumerate(LEVELS)}


class Grant(Struct, frozen=True):
    """What one copy of one event may be.

    `level` is the level that the copy honours; `rewrite` is False where the event may pass byte
    for byte; `redact` asks for the redaction pipeline over every text that the copy keeps.
    """

    level: Level
    rewrite: bool
    redact: bool = False


def lower(one: Level, other: Level) -> Level:
    """The lower of two levels."""
    return one if _RANK[one] <= _RANK[other] else other


def known_level(name: str) -> Level | None:
    """The level of this name, if there is one."""
    return name if name in _RANK else None  # type: ignore[return-value]


def declared(event: Mapping[str, Any]) -> Level | Literal["malformed"] | None:
    """The level that a valid AHP event declares in its extension, if any."""
    extensions = event.get("extensions")
    if not extensions or CAPTURE_EXTENSION not in extensions:
        return None
    declaration = extensions[CAPTURE_EXTENSION]
    level = declaration.get("level") if isinstance(declaration, dict) else None
    return level if isinstance(level, str) and level in _RANK else "malformed"  # type: ignore[return-value]


def held(ingress: Level, declaration: Level | Literal["malformed"] | None) -> Level:
    """The level of an AHP event: what its ingress holds, or what it declares if lower."""
    if declaration is None or declaration == "malformed":
        return ingress
    return lower(ingress, declaration)


def grant(level: Level, ceiling: Level, *, redact: bool = False) -> Grant:
    """The copy that a route with this ceiling may write; with `redact`, one that runs the redaction
    pipeline over every text that it keeps, and so may make `redacted` from `full`.

    A copy never rises, and `redacted` can't be made by leaving things out: otherwise `full` under
    a `redacted` ceiling becomes `metadata`. `full` and `redacted` pass a ceiling that is no lower
    unchanged; `none` and `metadata` are not believed, the plan of that level is applied all the
    same.
    """
    return _GRANTS[level, ceiling, redact]


def _granted(level: Level, ceiling: Level, redact: bool) -> Grant:
    honoured = lower(level, ceiling)
    if honoured == "redacted" and level == "full":
        if redact:
            return Grant("redacted", rewrite=True, redact=True)
        honoured = "metadata"
    return Grant(honoured, rewrite=honoured != level or honoured in ("none", "metadata"))


def _grants() -> Mapping[tuple[Level, Level, bool], Grant]:
    """All there are, each made once: equal ones are identical."""
    once: dict[Grant, Grant] = {}
    grants: dict[tuple[Level, Level, bool], Grant] = {}
    for level, ceiling, redact in product(LEVELS, LEVELS, (False, True)):
        made = _granted(level, ceiling, redact)
        grants[level, ceiling, redact] = once.setdefault(made, made)
    return grants


_GRANTS: Final = _grants()
