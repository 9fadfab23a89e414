"""The pages in docs/: the generated ones are those of this code, and what the others show is so."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from docs.reference import configuration, pages
from hookbus.router.config import Config

DOCS = Path(__file__).parent.parent / "docs"
PAGES = pages(DOCS)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_generated_page_is_up_to_date(path: Path) -> None:
    """It says what the code says now."""
    assert path.read_text(encoding="utf-8") == PAGES[path], "out of date; run `make docs`"


def structs(kind: msgspec.inspect.Type) -> set[type]:
    """The Structs within a type."""
    match kind:
        case msgspec.inspect.StructType():
            inner = [field.type for field in kind.fields]
            return {kind.cls}.union(*map(structs, inner))
        case msgspec.inspect.UnionType():
            return set().union(*map(structs, kind.types))
        case msgspec.inspect.DictType():
            return structs(kind.value_type)
        case msgspec.inspect.ListType():
            return structs(kind.item_type)
        case _:
            return set()


def test_every_setting_says_what_it_means() -> None:
    """The string behind a field is its line in the reference."""
    ours = {one for one in structs(msgspec.inspect.type_info(Config)) if "config" in one.__module__}
    silent = {
        f"{one.__name__}.{name}"
        for one in ours
        for name in set(one.__struct_fields__) - set(configuration.descriptions(one))
    }
    assert len(ours) > 10
    assert silent == set()
