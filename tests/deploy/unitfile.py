"""The systemd unit as data."""

from __future__ import annotations

import re
from pathlib import Path

from tests.deploy.containerfile import ROOT

FILE = ROOT / "deploy/systemd/hookbus.service"


def settings(path: Path = FILE) -> dict[str, list[str]]:
    """The values of each setting, in order; no name is in two sections."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", path.read_text(), re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def installation() -> list[str]:
    """The commands of deploy/README.md that install the unit."""
    text = (ROOT / "deploy/README.md").read_text().partition("## systemd")[2]
    (block,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines: list[str] = block.splitlines()
    return lines
