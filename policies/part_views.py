"""Finds the content parts of an event, by its schema, so that each can be changed in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookbus.policies.fates import Resolve, Schema, members_of, resolved

Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""A valid content part -> what takes its place."""

Visit = Callable[[Any, Change], Any]
"""`(value, change) -> value with its parts changed`; what holds no part is shared, not copied."""


def compile_visit(schema: Schema, resolve: Resolve) -> Visit | None:
    """The visit of all parts in values of this schema; None if they can't have any."""
    schema = resolved(schema, resolve)
    if schema.get("x-capture") == "part":
        return lambda part, change: change(part)
    if "items" in schema:
        return _array(compile_visit(schema["items"], resolve))
    if "properties" in schema or "allOf" in schema:
        visits = {
            name: compile_visit(member.schema, resolve)
            for name, member in members_of(schema, resolve).items()
        }
        return _object({name: visit for name, visit in visits.items() if visit is not None})
    return None


def _array(item: Visit | None) -> Visit | None:
    if item is None:
        return None
    return lambda value, change: [item(member, change) for member in value]


def _object(visits: Mapping[str, Visit]) -> Visit | None:
    if not visits:
        return None

    def visit(value: Any, change: Change) -> Any:
        copy = dict(value)
        for name, inner in visits.items():
            if name in copy:
                copy[name] = inner(copy[name], change)
        return copy

    return visit
