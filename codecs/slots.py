"""Where an event of a type may hold content parts, according to its schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hookbus.schemas.loader import Schema, reference, target

Path = tuple[str, ...]
"""Member names, with `*` for all items of an array."""


class Slots:
    """The paths of all content parts in events of a type."""

    def __init__(self, schemas: Schema, kind: str) -> None:
        self._schemas = schemas
        self.parts: tuple[Path, ...] = tuple(dict.fromkeys(self._find(reference(kind), ())))

    def _find(self, schema: Schema | bool, path: Path) -> Iterator[Path]:
        if isinstance(schema, bool):
            return
        schema = target(self._schemas, schema)
        if schema.get("x-capture") == "part":
            yield path
            return
        for name, member in schema.get("properties", {}).items():
            yield from self._find(member, (*path, name))
        if "items" in schema:
            yield from self._find(schema["items"], (*path, "*"))
        for branch in schema.get("allOf", ()):
            yield from self._find(branch, path)


def values_at(tree: Any, paths: tuple[Path, ...], pointer: str = "") -> Iterator[tuple[Any, str]]:
    """What a valid event holds at `paths`, each with its JSON Pointer."""
    for path in paths:
        yield from _at(tree, path, pointer)


def _at(node: Any, path: Path, pointer: str) -> Iterator[tuple[Any, str]]:
    if not path:
        yield node, pointer
    elif path[0] == "*":
        for index, item in enumerate(node):
            yield from _at(item, path[1:], f"{pointer}/{index}")
    elif path[0] in node:
        yield from _at(node[path[0]], path[1:], f"{pointer}/{path[0]}")
