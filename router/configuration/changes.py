"""What differs between two configurations, and what of it a running service can go over to. Pure.

Routes and sinks are made anew, so they can change in every way that a restart would allow. What a
connection, a file or a process was made of at the start can't.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from hookbus.router.configuration.config import Config, SinkConfig

Path = tuple[str, ...]

_FREE: Final[tuple[Path, ...]] = (
    ("routes",),
    ("sinks",),
    ("redaction",),
    ("failures", "journal_only"),
)
_WHY_NOT: Final = {
    "bus": "the connection to the bus is made at the start",
    "ingress": "the router joins the group of its topics at the start",
    "failures": "recorded failures are on their way there",
    "dead_letters": "replays look for them there",
    "metrics": "the port is taken at the start",
    "correlation": "the pending requests are kept in these bounds from the start",
    "limits": "input is judged by them from the start",
    "workers": "they are started with the service",
    "shutdown_grace": "it is promised to the platform at the start",
}

_OTHERWISE: Final = "it is read at the start"


class Changes(Struct, frozen=True):
    """The paths of what differs, with ` (added)` or ` (removed)` where only one side has it;
    `refused` are lines `path: why`."""

    paths: tuple[str, ...]
    refused: tuple[str, ...]


def compare(old: Config, new: Config) -> Changes:
    """Shows no values."""
    found = list(_differences(old, new, ()))
    refused = [
        f"{_name(path, how)}: {_WHY_NOT.get(path[0], _OTHERWISE)}; restart to change it"
        for path, how in found
        if not any(path[: len(free)] == free for free in _FREE)
    ]
    if bool(old.routes) != bool(new.routes):
        refused.append("routes: the first one comes, and the last one goes, only with a restart")
    return Changes(tuple(_name(path, how) for path, how in found), tuple(refused))


def goes_on(old: SinkConfig, new: SinkConfig) -> bool:
    """Whether a sink can go on without leaving its group: the same topics to the same backend."""
    return all(
        getattr(old, name) == getattr(new, name)
        for name in ("topics", "http", "file", "stdout", "topic")
    )


def _differences(old: Any, new: Any, at: Path) -> Iterator[tuple[Path, str]]:
    """The deepest members that differ, and how; what only one side has is named as a whole."""
    if old == new:
        return
    if isinstance(old, Struct) and type(old) is type(new):
        for name in old.__struct_fields__:
            yield from _differences(getattr(old, name), getattr(new, name), (*at, name))
    elif isinstance(old, dict) and isinstance(new, dict) and at[-1] != "match":
        for name in dict.fromkeys((*old, *new)):
            if name in old and name in new:
                yield from _differences(old[name], new[name], (*at, name))
            else:
                yield (*at, name), "added" if name in new else "removed"
    else:
        yield at, ""


def _name(path: Path, how: str) -> str:
    return ".".join(path) + (f" ({how})" if how else "")
