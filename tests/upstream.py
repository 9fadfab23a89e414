"""The reference data of AEP 0.1, where it lies beside the checkout; nothing of it is copied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "upstream" / "aep-0.1"

needs_upstream = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the AEP 0.1 reference data is not beside the checkout"
)


def load_json(name: str) -> Any:
    """One document, by its path in the reference data."""
    return json.loads(FOLDER.joinpath(name).read_text())


def cases(name: str) -> list[Any]:
    """The cases of a fixture, none if it isn't here."""
    return load_json(f"fixtures/{name}")["cases"] if FOLDER.is_dir() else []


def golden() -> list[bytes]:
    """The golden events as they are written, none if they aren't here."""
    path = FOLDER / "fixtures" / "golden" / "golden.jsonl"
    return path.read_bytes().splitlines() if path.is_file() else []
