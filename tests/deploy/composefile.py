"""The Compose file as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from tests.deploy.containerfile import ROOT

FILE = ROOT / "deploy/compose/compose.yaml"


class Mount(NamedTuple):
    """What a service sees at `inside`: a file or folder of the checkout, or a named volume."""

    source: Path | str
    inside: str
    writable: bool


def tree() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(FILE)
    return loaded


def mounts(service: dict[str, Any]) -> list[Mount]:
    found = []
    for text in service["volumes"]:
        source, inside, *mode = text.split(":")
        local = source.startswith((".", "/"))
        found.append(
            Mount((FILE.parent / source).resolve() if local else source, inside, mode != ["ro"])
        )
    return found


def tmpfs(service: dict[str, Any]) -> list[str]:
    """Where a service has memory instead of a file system."""
    return [text.partition(":")[0] for text in service["tmpfs"]]


def published(service: dict[str, Any]) -> dict[int, str]:
    """The ports inside, and the address of this machine that each is published at."""
    split = [text.rpartition(":") for text in service["ports"]]
    return {int(inside): address for address, _, inside in split}
