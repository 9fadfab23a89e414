"""The rewriting plan of an event type as code over its derived type: the fast way to cut an event.

It does to the Struct that `hookbus.codecs.typed` made of an event what `hookbus.policies.plan` does
to the event's tree. A Struct holds no member that no schema names, so that only the members which
change cost anything. The tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import FieldInfo, fields

from hookbus.policies.fates import (
    Below,
    Fate,
    Resolve,
    Schema,
    fate_of,
    fates_of,
    kept_texts,
    resolved,
)
from hookbus.policies.plan import PLACEHOLDER, own_gaps

StructCut = Callable[
    [Any, Mapping[str, Any], list[str], Callable[[Any, list[Any]], Any], list[Any]], Any
]
"""`(an event's Struct, its tree, pointers of the gaps so far, what cuts a part and adds it to the
parts so far, those parts) -> the cut Struct`. The event's own Struct is left as it is; the new one
shares with it what is the same."""

_STEP: Final = "    "


def compile_struct_cut(
    schema: Schema, resolve: Resolve, level: Below, kind: type[Struct]
) -> StructCut:
    """The code for events of this schema that `kind` holds. Raises TypeError where what has to
    change is held in a form that code can't change."""
    writer = _Writer(resolve, level)
    cut = writer.object(resolved(schema, resolve), kind, _Place("event", "tree", ""))
    source = "\n".join(
        ["def cut(event, tree, gaps, part, parts):", *writer.lines, f"{_STEP}return {cut}"]
    )
    exec(source, writer.scope)  # noqa: S102 - made of our own schemas
    made: StructCut = writer.scope["cut"]
    return made


class _Place(Struct, frozen=True):
    """A value, as expressions of its Struct and of its tree, and its JSON Pointer as the inside of
    an f-string."""

    value: str
    tree: str
    at: str

    def member(self, field: FieldInfo) -> _Place:
        name = field.encode_name
        return _Place(f"{self.value}.{field.name}", f"{self.tree}[{name!r}]", f"{self.at}/{name}")


class _Writer:
    """Writes the lines of a cut, and gathers in `scope` the names that they use."""

    def __init__(self, resolve: Resolve, level: Below) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {
            "UNSET": UNSET, "PLACEHOLDER": PLACEHOLDER, "own_gaps": own_gaps,
        }  # fmt: skip
        self._resolve = resolve
        self._level: Below = level
        self._depth = 1
        self._gaps = "gaps"
        self._names = 0

    def object(self, schema: Schema, kind: type[Struct], place: _Place) -> str:
        """Write what copies an object and changes its members; returns the copy's name."""
        copy = self._name("copy")
        self._line(f"{copy} = {place.value}.__copy__()")
        if not schema.get("x-gaps"):
            self._members(schema, kind, place, copy)
            return copy
        around, self._gaps = self._gaps, self._name("own")
        self._line(f"{self._gaps} = []")
        self._members(schema, kind, _Place(place.value, place.tree, ""), copy)
        with self._block(f"if {self._gaps}:"):
            self._line(f"{copy}.gaps = [*({copy}.gaps or ()), *own_gaps({self._gaps})]")
        self._gaps = around
        return copy

    def _members(self, schema: Schema, kind: type[Struct], place: _Place, copy: str) -> None:
        fates = fates_of(schema, self._resolve, self._level)
        for field in fields(kind):
            fate, member = fates.get(field.encode_name, ("go silently", {}))
            if fate == "go silently":
                self._line(f"{copy}.{field.name} = UNSET")
            elif not self._may_change(fate, member, field.type):
                continue
            elif field.required:
                self._member(fate, member, field, place, copy)
            else:
                with self._block(f"if {place.value}.{field.name} is not UNSET:"):
                    self._member(fate, member, field, place, copy)

    def _member(
        self, fate: Fate, schema: Schema, field: FieldInfo, place: _Place, copy: str
    ) -> None:
        changed = self._changed(fate, schema, _bare(field.type), place.member(field))
        self._line(f"{copy}.{field.name} = {changed}")

    def _changed(self, fate: Fate, schema: Schema, kind: Any, place: _Place) -> str:
        """Write what a change needs, and return the expression of what takes the value's place."""
        match fate:
            case "keep":
                return place.value
            case "go silently":
                return "UNSET"
            case "no items":
                return "[]"
            case "go":
                self._line(f'{self._gaps}.append(f"{place.at}")')
                return "UNSET"
            case "empty":
                with self._block(f"if {place.tree}:"):
                    self._line(f'{self._gaps}.append(f"{place.at}")')
                return f"[] if isinstance({place.tree}, list) else {{}}"
            case "placeholder":
                return self._placeholder(schema, kind, place.value)
            case "part":
                _expect(kind, Struct)
                return f"part({place.value}, parts)"
            case "object" if get_origin(kind) is dict:
                return self._map(schema, place.value)
            case "object":
                _expect(kind, Struct)
                held = self._name("held")
                self._line(f"{held} = {place.value}")
                return self.object(schema, kind, _Place(held, place.tree, place.at))
            case "items":
                return self._items(schema, kind, place)

    def _placeholder(self, schema: Schema, kind: Any, value: str) -> str:
        if get_origin(kind) is list:
            return f"[PLACEHOLDER] if {value} else []"
        _expect(kind, str)
        kept = kept_texts(schema)
        if not kept:
            return "PLACEHOLDER"
        return f"{value} if {value} in {self._constant('kept', kept)} else PLACEHOLDER"

    def _map(self, schema: Schema, value: str) -> str:
        """A map of values of one type: only those that the schema names stay."""
        fates = fates_of(schema, self._resolve, self._level)
        if any(fate not in ("keep", "go silently") for fate, _ in fates.values()):
            raise TypeError("a map with members that change")
        kept = frozenset(name for name, (fate, _) in fates.items() if fate == "keep")
        named = self._constant("named", kept)
        return f"{{name: item for name, item in {value}.items() if name in {named}}}"

    def _items(self, schema: Schema, kind: Any, place: _Place) -> str:
        fate, item, inner = self._item(schema, kind)
        if fate == "part":
            _expect(inner, Struct)
            return f"[part(item, parts) for item in {place.value}]"
        made, one, index = self._name("made"), self._name("item"), self._name("index")
        self._line(f"{made} = []")
        with self._block(f"for {index}, {one} in enumerate({place.value}):"):
            at = _Place(one, f"{place.tree}[{index}]", f"{place.at}/{{{index}}}")
            changed = self._changed(fate, item, inner, at)
            self._line(f"{made}.append({changed})")
        return made

    def _item(self, schema: Schema, kind: Any) -> tuple[Fate, Schema, Any]:
        item = resolved(schema["items"], self._resolve)
        (inner,) = get_args(kind)
        return fate_of(item, self._level, needed=True), item, _bare(inner)

    def _may_change(self, fate: Fate, schema: Schema, kind: Any) -> bool:
        """Whether a value of this fate can become another one."""
        kind = _bare(kind)
        if fate == "items":
            return self._may_change(*self._item(schema, kind))
        if fate == "object" and get_origin(kind) is not dict:
            _expect(kind, Struct)
            fates = fates_of(schema, self._resolve, self._level)
            return any(
                self._may_change(*fates.get(field.encode_name, ("go silently", {})), field.type)
                for field in fields(kind)
            )
        return fate != "keep"

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        self._line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def _line(self, text: str) -> None:
        self.lines.append(_STEP * self._depth + text)

    def _constant(self, stem: str, value: Any) -> str:
        name = self._name(stem)
        self.scope[name] = value
        return name

    def _name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"


def _bare(kind: Any) -> Any:
    """A field's type without its bounds, and without the type of an absent member."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        present = [each for each in get_args(kind) if each is not UnsetType]
        return _bare(present[0]) if len(present) == 1 else kind
    return kind


def _expect(kind: Any, expected: type) -> None:
    if not isinstance(kind, type) or not issubclass(kind, expected):
        raise TypeError(f"what has to change is no {expected.__name__}")
