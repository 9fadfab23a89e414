"""The names in a configuration that the shell may complete an option with.

The file is read as it is, good or not: whoever is typing a command is not told what is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Tree = Mapping[str, Any]


def completing(option: argparse.Action, names: Callable[[Tree], Iterable[str]]) -> None:
    """Have an option's value completed with names of the configuration that `-c` gives."""

    def complete(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        tree = _read(getattr(parsed_args, "config", None))
        return list(dict.fromkeys(name for name in names(tree) if isinstance(name, str)))

    option.completer = complete  # type: ignore[attr-defined]  # where argcomplete looks for it


def _read(path: Path | None) -> Tree:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if path is None:
        return {}
    try:
        tree = YAML(typ="safe", pure=True).load(path.expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, YAMLError):
        return {}
    return tree if isinstance(tree, Mapping) else {}


def ingresses(tree: Tree) -> Iterable[str]:
    return _section(tree, "ingress")


def sinks(tree: Tree) -> Iterable[str]:
    return _section(tree, "sinks")


def parts(tree: Tree) -> Iterator[str]:
    """What `run --only` takes."""
    yield "router"
    yield from (f"sink:{name}" for name in sinks(tree))


def topics(tree: Tree) -> Iterator[str]:
    """Every topic that is named."""
    for section in ("ingress", "routes", "sinks"):
        for settings in _section(tree, section).values():
            if isinstance(settings, Mapping):
                found = settings.get("topics")
                yield from found if isinstance(found, list) else ()
                yield from _topic(settings)
    for section in ("failures", "dead_letters"):
        yield from _topic(_section(tree, section))


def _topic(settings: Tree) -> list[Any]:
    return [settings["topic"]] if "topic" in settings else []


def _section(tree: Tree, name: str) -> Tree:
    found = tree.get(name)
    return found if isinstance(found, Mapping) else {}
