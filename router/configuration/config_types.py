"""The types of values that several parts of the configuration share."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, field

Positive = Annotated[int, Meta(ge=1)]
Name = Annotated[str, Meta(min_length=1)]
# `(?!\n)$` is the very end in Python, where `$` lets a newline pass, and in a JSON Schema, whose
# patterns are JavaScript's and know no `\Z`.
Topic = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,249}(?!\n)$")]


def default(value: Any) -> Any:
    """A default of a type that msgspec doesn't know; it is immutable, so sharing it is safe."""
    return field(default_factory=lambda: value)
