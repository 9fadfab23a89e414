"""The configuration reference, from the Structs in `hookbus.router.config`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from hookbus.router import config
from hookbus.router.units import Duration, Secret, Size

_HEAD: Final = """\
# Configuration reference

Generated from `router/config.py` by `make docs`; change it there.

One YAML file (`-c FILE`). An unknown key, a missing one and a wrong value are errors; `hookbus
plan` names all of them at once, with their paths. `hookbus schema` prints a JSON Schema for
editors.

- A **duration** is a number with its unit: `750ms`, `30s`, `5m`, `24h`, `7d`.
- A **size** is one too: `512B`, `64KiB`, `4MiB`, `1GiB`, `10MB`.
- A **secret** is a reference, `{env: NAME}` or `{file: PATH}`, never the secret itself. A newline
  at the end of the file is not a part of it.
- A **topic** is 1 to 249 letters, digits or `.`, `_`, `-`.
- `<name>` stands for a name that you choose.
"""

_PATTERNS: Final = {"topic": config.Topic, "text": config.Name}


def page() -> str:
    return "\n".join([_HEAD, *_sections(config.Config, "")])


def _sections(struct: type[Struct], path: str) -> Iterator[str]:
    """The table of a mapping, then those of the mappings in it."""
    texts = descriptions(struct)
    yield f"## {f'`{path}`' if path else 'The file'}\n"
    if struct.__doc__ and path:
        yield f"{struct.__doc__.strip()}\n"
    if struct.__struct_fields__:
        yield "| key | value | default | meaning |\n|---|---|---|---|"
    inner = []
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        hint = hints[field.name]
        default = "**required**" if field.required else _shown(_default(field))
        yield f"| `{field.name}` | {_kind(hint)} | {default} | {_cell(texts.get(field.name, ''))} |"
        inner += [(found, _join(path, field.name) + key) for found, key in _mappings(hint)]
    yield ""
    for found, there in inner:
        yield from _sections(found, there)


def descriptions(struct: type[Struct]) -> dict[str, str]:
    """Field name to the string that follows the field in the source."""
    (body,) = [
        node.body
        for node in ast.parse(inspect.getsource(inspect.getmodule(struct) or config)).body
        if isinstance(node, ast.ClassDef) and node.name == struct.__name__
    ]
    found = {}
    for field, text in pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(said))),
            ):
                found[name] = inspect.cleandoc(said)
    return found


def _mappings(hint: Any) -> Iterator[tuple[type[Struct], str]]:
    """The Structs in a type that need a section of their own, and what their path ends in."""
    hint = _bare(hint)
    if get_origin(hint) is dict:
        yield from ((found, f".<name>{end}") for found, end in _mappings(get_args(hint)[1]))
    elif isinstance(hint, type) and issubclass(hint, Struct) and hint is not Secret:
        yield hint, ""


def _bare(hint: Any) -> Any:
    """Without the `| None` of what may be left out."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = [part for part in get_args(hint) if part is not NoneType]
    return hint


def _kind(hint: Any) -> str:
    """A type in words."""
    hint = _bare(hint)
    for word, known in _PATTERNS.items():
        if hint == known:
            return word
    if get_origin(hint) is Annotated:
        kind, *metas = get_args(hint)
        return _kind(kind) + "".join(_limits(meta) for meta in metas if isinstance(meta, Meta))
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if get_origin(hint) is list:
        return f"list of {_kind(arguments[0])}"
    if get_origin(hint) is dict:
        return f"mapping of names to {_kind(arguments[1])}"
    if isinstance(hint, type) and issubclass(hint, Struct) and hint is not Secret:
        return "mapping"
    return _WORDS[hint]


_WORDS: Final = {
    str: "text", int: "integer", float: "number", bool: "boolean", Any: "anything",
    Duration: "duration", Size: "size", Secret: "secret",
}  # fmt: skip


def _limits(meta: Meta) -> str:
    if meta.ge is not None and meta.le is not None:
        return f" from {meta.ge:g} to {meta.le:g}"
    if meta.ge is not None:
        return f", at least {meta.ge:g}"
    if meta.min_length is not None:
        return f", at least {meta.min_length}"
    raise NotImplementedError(f"say this limit in words: {meta}")


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default is not NODEFAULT else field.default_factory()


def _shown(value: Any) -> str:
    """A default as it would be written."""
    match value:
        case None | Struct():
            return ""
        case Duration():
            return f"`{_with_unit(value, _DURATIONS)}`"
        case Size():
            return f"`{_with_unit(value, _SIZES)}`"
        case bool():
            return f"`{str(value).lower()}`"
        case dict():
            return "`{}`"
        case _:
            return f"`{value}`"


_DURATIONS: Final = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1), ("ms", 0.001))
_SIZES: Final = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("MB", 10**6), ("kB", 10**3),
                 ("B", 1))  # fmt: skip


def _with_unit(value: float, units: tuple[tuple[str, float], ...]) -> str:
    """In the largest unit of which it is a whole number."""
    for unit, size in units:
        count = round(value / size, 6)
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    return f"{value:g}{units[-1][0]}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
