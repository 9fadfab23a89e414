"""Reads a configuration file and names every problem in it, not just the first."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import inspect
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from hookbus.router.configuration.config import Config
from hookbus.router.configuration.units import Duration, Secret, Size
from hookbus.router.errors import ConfigError


def load(path: Path) -> Config:
    """The configuration in `path`. Raises ConfigError with all problems of its shape."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: can't be read: {type(error).__name__}"]) from error
    return parse(text)


def parse(text: str) -> Config:
    """As `load`, from the text of a file."""
    try:
        tree = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError([f"{where}{_without_value(error.problem or 'not YAML')}"]) from None
    except YAMLError as error:
        raise ConfigError([f"not YAML: {type(error).__name__}"]) from None
    problems = list(_problems(tree, inspect.type_info(Config), ""))
    if problems:
        raise ConfigError(problems)
    return msgspec.convert(tree, Config, dec_hook=_decode)


def _without_value(problem: str) -> str:
    """The parser quotes the values of a duplicate key, and one may be a secret."""
    return problem.splitlines()[0].partition(" with value ")[0]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a configuration file, for editors."""
    return msgspec.json.schema(Config, schema_hook=_schema_of)


def _decode(kind: type, value: Any) -> Any:
    if kind is Duration or kind is Size:
        return kind.parse(value)
    raise NotImplementedError


def _schema_of(kind: type) -> dict[str, Any]:
    if kind is Duration or kind is Size:
        return {"type": "string", "description": kind.__doc__}
    raise NotImplementedError


def _problems(value: Any, expected: inspect.Type, at: str) -> Iterator[str]:
    expected = _alternative(value, expected)
    match expected:
        case inspect.StructType():
            yield from _struct_problems(value, expected, at)
        case inspect.DictType() if isinstance(value, Mapping):
            for key, member in value.items():
                there = f"{at}.{key}"
                yield from _leaf_problems(key, expected.key_type, there)
                yield from _problems(member, expected.value_type, there)
        case inspect.ListType() if isinstance(value, list) and value:
            for index, member in enumerate(value):
                yield from _problems(member, expected.item_type, f"{at}[{index}]")
        case _:
            yield from _leaf_problems(value, expected, at)


def _alternative(value: Any, expected: inspect.Type) -> inspect.Type:
    """Of an optional type, the part that is not None; a null stays a null."""
    while isinstance(expected, inspect.Metadata):
        expected = expected.type
    if isinstance(expected, inspect.UnionType) and value is not None:
        for kind in expected.types:
            if not isinstance(kind, inspect.NoneType):
                return kind
    return expected


def _struct_problems(value: Any, expected: inspect.StructType, at: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{at or 'the file'}: expected a mapping"
        return
    fields = {known.encode_name: known for known in expected.fields}
    for key in value:
        if key not in fields:
            yield f"{_join(at, key)}: unknown key{_suggestion(key, fields)}"
    for name, known in fields.items():
        if name in value:
            yield from _problems(value[name], known.type, _join(at, name))
        elif known.required:
            yield f"{_join(at, name)}: missing"
    if expected.cls is Secret and set(value) <= set(fields):
        problem = Secret(env=value.get("env"), file=value.get("file")).problem()
        if problem:
            yield f"{at}: {problem}"


def _leaf_problems(value: Any, expected: inspect.Type, at: str) -> Iterator[str]:
    if isinstance(expected, inspect.LiteralType):
        if value not in expected.values:
            yield f"{at}: must be one of {', '.join(map(str, expected.values))}"
        return
    kind = _python_type(expected)
    try:
        msgspec.convert(value, kind, dec_hook=_decode)
    except (msgspec.ValidationError, ValueError) as error:
        yield f"{at}: {error}"


def _python_type(expected: inspect.Type) -> Any:
    """The annotation that an inspected leaf type came from."""
    match expected:
        case inspect.CustomType():
            return expected.cls
        case inspect.StrType():
            return _annotated(str, expected, "min_length", "max_length", "pattern")
        case inspect.IntType():
            return _annotated(int, expected, "gt", "ge", "lt", "le")
        case inspect.ListType():
            return _annotated(list[Any], expected, "min_length", "max_length")
        case inspect.FloatType():
            return _annotated(float, expected, "gt", "ge", "lt", "le")
        case inspect.BoolType():
            return bool
        case inspect.DictType():
            return dict[str, Any]
        case inspect.NoneType() | inspect.AnyType():
            return Any
        case inspect.UnionType():
            return Any
        case _:
            raise TypeError(f"a configuration has no {type(expected).__name__}")


def _annotated(kind: Any, expected: Any, *names: str) -> Any:
    limits = {
        name: getattr(expected, name) for name in names if getattr(expected, name) is not None
    }
    return Annotated[kind, msgspec.Meta(**limits)] if limits else kind


def _join(at: str, key: Any) -> str:
    return f"{at}.{key}" if at else str(key)


def _suggestion(key: Any, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(str(key), known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known)}"
