"""The container file as data, and what of a checkout goes into its build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

import dockerfile

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy/container/Dockerfile"


class Step(NamedTuple):
    """One instruction: `COPY` with its flags and words, `RUN` with its shell command, ...; `exec`
    is whether the words are a command without a shell."""

    name: str
    flags: tuple[str, ...]
    words: tuple[str, ...]
    exec: bool


class Stage(NamedTuple):
    """One stage: the image that it starts from, and its steps."""

    name: str
    base: str
    steps: tuple[Step, ...]

    def last(self, name: str) -> Step:
        """The last instruction of this name, which is the one that holds."""
        return [step for step in self.steps if step.name == name][-1]


def stages(path: Path = FILE) -> list[Stage]:
    """The stages in order, with the defaults of the arguments in the names of their bases."""
    arguments: dict[str, str] = {}
    found: list[Stage] = []
    for step in dockerfile.parse_file(str(path)):
        if step.cmd == "ARG" and not found:
            name, _, value = step.value[0].partition("=")
            arguments[name] = value
        elif step.cmd == "FROM":
            name = step.value[2] if len(step.value) > 1 else str(len(found))
            found.append(Stage(name, Template(step.value[0]).substitute(arguments), ()))
        else:
            last = found[-1]
            one = Step(step.cmd, step.flags, step.value, step.json)
            found[-1] = last._replace(steps=(*last.steps, one))
    return found


def pairs(words: Sequence[str]) -> dict[str, str]:
    """The names and values of an ENV or a LABEL."""
    return {name: value.strip('"') for name, value in zip(words[::2], words[1::2], strict=True)}


def context(checkout: Path) -> Iterator[Path]:
    """The files of a checkout that a build sees, by the rules of .dockerignore: the last line that
    matches a file or a folder above it decides."""
    lines = (checkout / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*", "first nothing, then what is wanted"
    wanted = {rule[1:].partition("/")[0] for rule in rules if rule.startswith("!")}
    for top in sorted(checkout / name for name in wanted):
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and not _ignored(path.relative_to(checkout), rules):
                yield path.relative_to(checkout)


def _ignored(path: Path, rules: Sequence[str]) -> bool:
    ignored = False
    for rule in rules:
        pattern = _pattern(rule.removeprefix("!"))
        if any(pattern.fullmatch(str(part)) for part in (path, *path.parents)):
            ignored = not rule.startswith("!")
    return ignored


def _pattern(rule: str) -> re.Pattern[str]:
    words = re.split(r"(\*\*/|\*)", rule.rstrip("/"))
    meaning = {"**/": "(?:.*/)?", "*": "[^/]*"}
    return re.compile("".join(meaning.get(word, re.escape(word)) for word in words))
