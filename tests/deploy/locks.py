"""The locked dependencies of the container image."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def pins(name: str) -> list[Requirement]:
    """What a lock file holds, a version each."""
    text = (ROOT / "deploy/container" / name).read_text().replace("\\\n", " ")
    lines = [line.partition(" --hash")[0].strip() for line in text.splitlines()]
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def version(pin: Requirement) -> str:
    """The version that a pin allows."""
    ((operator, found),) = [(one.operator, one.version) for one in pin.specifier]
    assert operator == "==", pin
    return found


def pyproject() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def unsatisfied(wanted: Iterable[str], locked: Iterable[Requirement]) -> list[str]:
    """The requirements that no pin satisfies."""
    versions = {plain(pin.name): version(pin) for pin in locked}
    return [
        text
        for text in wanted
        if not Requirement(text).specifier.contains(
            versions.get(plain(Requirement(text).name), "0.dev0")
        )
    ]


def plain(name: str) -> str:
    """The one spelling of a project's name."""
    return re.sub(r"[-_.]+", "-", name).lower()
