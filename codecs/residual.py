"""What a JSON Schema says of a value beyond its type, as a Python expression.

The expression is about an attribute path of a decoded Struct (`self.tool.mcp`), whose types are
known to be right; absent members are `UNSET`. It is true only if the schema accepts the value.
The schemas are our own documents, so the source that is put together here is ours too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from keyword import iskeyword
from typing import Any

from msgspec import UNSET, Struct

from hookbus.schemas.loader import Schema, target

Formats = Mapping[str, Callable[[str], bool]]


def attribute(member: str) -> str:
    """The Python name of a member, such as `gen_ai_request_model` of `gen_ai.request.model`."""
    name = member.replace(".", "_")
    return f"{name}_" if iskeyword(name) else name


def anchored(pattern: str) -> str:
    """A schema's pattern as Python's: `$` is the end, and not also before a trailing newline."""
    return re.sub(r"(?<!\\)\$", r"\\Z", pattern)


class Expressions:
    """Writes expressions, and gathers in `scope` the names that they use."""

    def __init__(self, schemas: Schema, formats: Formats) -> None:
        self.scope: dict[str, Any] = {
            "UNSET": UNSET,
            "_only": _has_only,
            "_any": _has_any,
            **{f"_format_{_word(name)}": check for name, check in formats.items()},
        }
        self._schemas = schemas
        self._present: frozenset[str] = frozenset()

    def about(self, schema: Schema, required: Iterable[str]) -> str:
        """The expression that `schema` accepts the Struct `self`, which has the `required` members
        for sure."""
        self._present = frozenset(f"self.{attribute(member)}" for member in required)
        return self.of(schema, "self")

    def of(self, schema: Schema | bool, value: str) -> str:
        """The expression that `schema` accepts what the expression `value` gives."""
        if isinstance(schema, bool):
            return str(schema)
        schema = target(self._schemas, schema)
        terms = [term for key in schema for term in self._terms(key, schema, value)]
        return " and ".join(f"({term})" for term in terms) or "True"

    def _terms(self, keyword: str, schema: Schema, value: str) -> list[str]:
        argument = schema[keyword]
        match keyword:
            case "allOf":
                return [self.of(branch, value) for branch in argument]
            case "anyOf":
                return [" or ".join(f"({self.of(branch, value)})" for branch in argument)]
            case "not":
                return [f"not ({self._condition(argument, value)})"]
            case "if":
                then = self.of(schema.get("then", True), value)
                other = self.of(schema.get("else", True), value)
                return [f"({then}) if ({self._condition(argument, value)}) else ({other})"]
            case "required":
                return [f"{value}.{attribute(member)} is not UNSET" for member in argument]
            case "properties":
                return [self._member(f"{value}.{attribute(m)}", s) for m, s in argument.items()]
            case "const":
                return [f"{value} {'is' if isinstance(argument, bool) else '=='} {argument!r}"]
            case "enum":
                return [f"{value} in {tuple(argument)!r}"]
            case "contains":
                return [f"any({self.of(argument, f'{value[0]}i')} for {value[0]}i in {value})"]
            case "items":
                return [f"all({self.of(argument, f'{value[0]}i')} for {value[0]}i in {value})"]
            case "maxItems":
                return [f"len({value}) <= {argument}"]
            case "uniqueItems":
                return [f"len(set({value})) == len({value})"]
            case "minProperties" if argument == 1:
                return [f"_any({value})"]
            case "propertyNames" if "enum" in argument:
                return [f"_only({value}, {tuple(argument['enum'])!r})"]
            case "pattern":
                name = f"_pattern{len(self.scope)}"
                self.scope[name] = re.compile(anchored(argument)).search
                return [f"{name}({value}) is not None"]
            case "format":
                return [f"_format_{_word(argument)}({value})"]
            case "then" | "else" | "x-capture" | "x-capture-keep" | "x-gaps" | "x-degrade":
                return []
        raise TypeError(f"no expression for {keyword}")

    def _condition(self, schema: Schema | bool, value: str) -> str:
        """Like `of`, where a mistaken no would be as bad as a mistaken yes."""
        expression = self.of(schema, value)
        if "_only(" in expression or "_any(" in expression:
            raise TypeError("no expression for a condition on unnamed members")
        return expression

    def _member(self, value: str, schema: Schema | bool) -> str:
        if schema is False:
            return f"{value} is UNSET"
        if value in self._present:
            return self.of(schema, value)
        return f"{value} is UNSET or ({self.of(schema, value)})"


def _word(name: str) -> str:
    return name.replace("-", "_")


def _has_any(value: Struct) -> bool:
    """Whether a named member is there."""
    return any(getattr(value, name) is not UNSET for name in value.__struct_fields__)


def _has_only(value: Struct, allowed: tuple[str, ...]) -> bool:
    """Whether no member but the allowed ones is there. An open Struct doesn't know: False."""
    return value.__struct_config__.forbid_unknown_fields and all(
        name in allowed or getattr(value, name) is UNSET for name in value.__struct_fields__
    )
