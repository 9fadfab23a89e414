"""The schemas compiled to Python: slower than the derived types, but the last word, and the one
that says where a value breaks them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fastjsonschema

from hookbus.codecs.residual import Formats
from hookbus.codecs.verdict import Refusal
from hookbus.schemas.loader import Schema, reference, target

_BRANCHES = ("allOf", "anyOf")
_BRANCH = ("if", "then", "else", "not")
_MOST_DOTS = 5
"""The most dots in a member's name, and one; `gen_ai.evaluation.score.value` has three."""


class Compiled:
    """Checks values against definitions. Each is compiled when it is first needed, which takes
    tens of milliseconds, and a stream of valid ordinary events may never need any."""

    def __init__(self, schemas: Schema, formats: Formats) -> None:
        self._schemas = schemas
        self._formats = dict(formats)
        self._validators: dict[str, Any] = {}

    def check(self, name: str, tree: Any) -> Refusal | None:
        """The first fault of `tree` as an instance of the definition `name`."""
        validate = self._validators.get(name)
        if validate is None:
            validate = self._validators[name] = self._compile(name)
        try:
            validate(tree)
        except fastjsonschema.JsonSchemaValueException as fault:
            # a member that the schema `false` forbids breaks no keyword; `false` means `not: {}`
            return Refusal("schema", self._pointer(name, fault.path[1:]), fault.rule or "not")
        return None

    def _compile(self, name: str) -> Any:
        return fastjsonschema.compile(
            {**self._schemas, "allOf": [reference(name)]},
            formats=self._formats,
            use_default=False,
        )

    def _pointer(self, name: str, steps: list[str]) -> str:
        """Ends before the first member that the schema doesn't name: such names are content.
        `steps` are what lies between dots, which a member's name may hold too."""
        pointer = ""
        schemas = [reference(name)]
        while steps and schemas:
            for length in range(1, 1 + min(len(steps), _MOST_DOTS)):
                step = ".".join(steps[:length])
                if entered := self._enter(schemas, step):
                    pointer += f"/{step}"
                    break
            schemas, steps = entered, steps[length:]
        return pointer

    def _enter(self, schemas: list[Schema], step: str) -> list[Schema]:
        return [
            found
            for schema in schemas
            for branch in self._branches(schema)
            for found in _entered(branch, step)
        ]

    def _branches(self, schema: Schema | bool) -> Iterator[Schema]:
        if isinstance(schema, bool):
            return
        schema = target(self._schemas, schema)
        yield schema
        for keyword in _BRANCHES:
            for branch in schema.get(keyword, ()):
                yield from self._branches(branch)
        for keyword in _BRANCH:
            yield from self._branches(schema.get(keyword, True))


def _entered(schema: Schema, step: str) -> Iterator[Schema]:
    """The schemas of a member or an item."""
    if step in schema.get("properties", {}):
        yield schema["properties"][step]
    if step.isdigit():
        for keyword in ("items", "contains"):
            if keyword in schema:
                yield schema[keyword]
