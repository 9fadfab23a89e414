"""The text of a command's help around its options, and how it is filled into lines.

A text has a paragraph a line. A line that begins with spaces is an item: a term, then two spaces or
more, then what is said of it, which hangs in a column of its own. Examples stay as they are.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from hookbus.router.usage.contract import EXITS, Usage

_ITEM: Final = re.compile(r"( +\S.*?  +)(.*)")
_LONGEST: Final = 20
_ALL_FILES: Final[Mapping[str, str]] = {
    "-c FILE": "The configuration, YAML; `hookbus schema` prints its JSON Schema.",
}
_ALL_ENVIRONMENT: Final[Mapping[str, str]] = {
    "COLUMNS": "The width of help, if it is not that of the terminal.",
    "{env: NAME}": "Secrets, by the names that the configuration gives.",
}


def epilog(usage: Usage | None) -> str:
    """The sections that follow the options; those of the program without a command."""
    if usage is None:
        exits: Mapping[int, str | None] = dict.fromkeys(EXITS)
        files, environment = _ALL_FILES, _ALL_ENVIRONMENT
    else:
        exits, files, environment = usage.exits, usage.files, usage.environment
    lines = [
        *_section("exit status", {str(code): exits[code] or EXITS[code] for code in exits}),
        *(_examples(usage) if usage is not None else ()),
        *_section("files", files),
        *_section("environment", environment),
    ]
    return "\n".join(lines).strip("\n")


def _section(title: str, items: Mapping[str, str]) -> Iterator[str]:
    if items:
        column = min(max(map(len, items)), _LONGEST)
        yield f"{title}:"
        yield from (f"  {term:<{column}}  {text}" for term, text in items.items())


def _examples(usage: Usage) -> Iterator[str]:
    yield "examples:"
    for example in usage.examples:
        yield f"  {example.does}:"
        yield f"    $ {example.line}"


def filled(text: str, width: int) -> str:
    """The text in lines of at most this width, with an empty one between paragraphs and before the
    title of a section."""
    made: list[str] = []
    for line in text.split("\n"):
        if made and not line.startswith(" "):
            made.append("")
        made += _lines(line, width)
    return "\n".join(made)


def _lines(line: str, width: int) -> list[str]:
    if line.startswith("    $ "):
        return [line]
    item = _ITEM.fullmatch(line)
    if item is None:
        return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    first, text = item.groups()
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )
