"""msgspec types derived from the schemas: the fast way to accept an event.

What a derived type decodes, its schema accepts. The converse need not hold: a refusal means only
that the compiled schema has to decide (it does for `1.0` where an integer is due). What a type
can't say - formats, conditions, banned members - is checked in its `__post_init__`.
"""

from __future__ import annotations

from types import GenericAlias
from typing import Annotated, Any, Literal, Union

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, defstruct, field

from hookbus.codecs.residual import Expressions, Formats, anchored, attribute
from hookbus.schemas.loader import Schema, target

_UNTYPED = ("format", "uniqueItems", "contains", "maxItems")
"""Keywords of strings and arrays that no type expresses; the Struct around them checks them."""
_TYPED = frozenset(_UNTYPED).union(
    ("type", "const", "enum", "minLength", "pattern", "minimum", "maximum", "items", "minItems"),
    ("properties", "required", "additionalProperties", "propertyNames", "minProperties"),
    ("allOf", "anyOf", "not", "if", "then", "else"),
    ("x-capture", "x-capture-keep", "x-gaps", "x-degrade"),
)
"""All keywords that a schema may have here; any other would go unchecked."""


class _Shape:
    """An object schema with its branches laid together."""

    def __init__(self) -> None:
        self.members: dict[str, Schema] = {}
        self.required: set[str] = set()
        self.banned: set[str] = set()
        self.closed: set[str] | None = None
        self.rest: list[Schema] = []


class Types:
    """Derives types from `schemas` (of `hookbus.schemas.loader.load`)."""

    def __init__(self, schemas: Schema, formats: Formats) -> None:
        self._schemas = schemas
        self._expressions = Expressions(schemas, formats)
        self._structs: dict[int, tuple[Schema, type[Struct]]] = {}
        """By the identity of the schema, which is kept so that no other can have it."""

    def of(self, schema: Schema) -> Any:
        """The type; raises TypeError for a schema that can't be expressed."""
        schema = target(self._schemas, schema)
        if strange := schema.keys() - _TYPED:
            raise TypeError(f"no type for {sorted(strange)}")
        if "const" in schema or "enum" in schema:
            return _literal(schema)
        match schema.get("type"):
            case "string":
                return _string(schema)
            case "boolean":
                return bool
            case "null":
                return None
            case "integer":
                return _number(int, schema)
            case "number":
                # a number that is written as an integer stays one: a copy must not change it
                return Union[_number(int, schema), _number(float, schema)]  # noqa: UP007
            case "array":
                return self._array(schema)
            case list() as kinds:
                return Union[tuple(self.of({**schema, "type": kind}) for kind in kinds)]  # noqa: UP007
            case None if not schema.keys() - {"x-capture"}:
                return Raw
            case "object" | None:
                return self._object(schema)
        raise TypeError("a schema without a type")

    def _array(self, schema: Schema) -> Any:
        if any(key in target(self._schemas, schema["items"]) for key in _UNTYPED):
            raise TypeError("nothing checks the items of an array one by one")
        items = GenericAlias(list, (self.of(schema["items"]),))
        return _annotated(items, Meta(min_length=schema.get("minItems", 0)))

    def _object(self, schema: Schema) -> Any:
        if "propertyNames" in schema and "properties" not in schema:
            name = _annotated(str, Meta(pattern=anchored(schema["propertyNames"]["pattern"])))
            return GenericAlias(dict, (name, Raw))
        if isinstance(others := schema.get("additionalProperties"), dict):
            if any(member != others for member in schema.get("properties", {}).values()):
                raise TypeError("a map of values of several types")
            return GenericAlias(dict, (str, self.of(others)))
        if id(schema) not in self._structs:
            self._structs[id(schema)] = schema, self._struct(schema)
        return self._structs[id(schema)][1]

    def _struct(self, schema: Schema) -> type[Struct]:
        shape = _Shape()
        self._gather(schema, shape)
        if shape.closed is not None and shape.closed != shape.members.keys():
            raise TypeError("a closed branch that doesn't name all members")
        members = {name: self.of(member) for name, member in shape.members.items()}
        if shape.closed is None:  # members of any type, that must be there or must not
            members |= dict.fromkeys((shape.banned | shape.required) - members.keys(), Raw)
        if len({attribute(name) for name in members}) < len(members):
            raise TypeError("two members of one Python name")
        expression = self._expressions.about({"allOf": shape.rest}, shape.required)
        namespace = {} if expression == "True" else {"__post_init__": self._check(expression)}
        return defstruct(
            "Derived",
            [_field(name, member, name in shape.required) for name, member in members.items()],
            namespace=namespace,
            rename={attribute(name): name for name in members},
            # unnamed members can't be counted or compared with a list: the schema itself decides
            forbid_unknown_fields=shape.closed is not None or "minProperties" in schema,
            kw_only=True,
            gc=False,
        )

    def _gather(self, schema: Schema, shape: _Shape) -> None:
        """Lay a schema and its `allOf` branches into `shape`; what doesn't fit goes to its rest."""
        schema = target(self._schemas, schema)
        for name, member in schema.get("properties", {}).items():
            if member is False:
                shape.banned.add(name)
                shape.rest.append({"properties": {name: member}})
            elif name in shape.members:
                shape.rest.append({"properties": {name: member}})
            else:
                self._name(name, member, shape)
        if schema.get("additionalProperties") is False:
            shape.closed = set(schema["properties"])
        shape.required.update(schema.get("required", ()))
        for keyword in ("anyOf", "not", "minProperties", "propertyNames"):
            if keyword in schema:
                shape.rest.append({keyword: schema[keyword]})
        if "if" in schema:
            shape.rest.append({k: schema[k] for k in ("if", "then", "else") if k in schema})
        for branch in schema.get("allOf", ()):
            self._gather(branch, shape)

    def _name(self, name: str, member: Schema, shape: _Shape) -> None:
        shape.members[name] = member
        resolved = target(self._schemas, member)
        if rest := {key: resolved[key] for key in _UNTYPED if key in resolved}:
            shape.rest.append({"properties": {name: rest}})
        if isinstance(resolved.get("const"), bool):
            shape.rest.append({"properties": {name: {"const": resolved["const"]}}})

    def _check(self, expression: str) -> Any:
        source = f"def check(self):\n if not ({expression}): raise ValueError"
        scope = dict(self._expressions.scope)
        exec(source, scope)  # noqa: S102 - made of our own schemas, at start
        return scope["check"]


def _field(name: str, member: Any, required: bool) -> Any:
    if required:
        return attribute(name), member
    return attribute(name), Union[member, UnsetType], field(default=UNSET)  # noqa: UP007


def _literal(schema: Schema) -> Any:
    values = schema.get("enum", [schema.get("const")])
    if isinstance(values[0], bool):
        return bool
    return Literal[tuple(values)]


def _number(kind: type, schema: Schema) -> Any:
    bounds = {"ge": schema.get("minimum"), "le": schema.get("maximum")}
    known = {name: bound for name, bound in bounds.items() if bound is not None}
    return _annotated(kind, Meta(**known)) if known else kind


def _string(schema: Schema) -> Any:
    shortest = schema.get("minLength", 0)
    if "pattern" in schema:
        return _annotated(str, Meta(pattern=anchored(schema["pattern"]), min_length=shortest))
    return _annotated(str, Meta(min_length=shortest)) if shortest else str


def _annotated(kind: Any, meta: Meta) -> Any:
    return Annotated[kind, meta]
