"""Makes the reference pages from the code that they describe. No part of the service."""

from __future__ import annotations

from pathlib import Path

from docs.reference import configuration, metrics, sizes


def pages(folder: Path) -> dict[Path, str]:
    """What each generated page in `folder` has to hold."""
    sizing = folder / "sizing.md"
    return {
        folder / "configuration.md": configuration.page(),
        folder / "metrics.md": metrics.page(),
        sizing: sizes.page(sizing.read_text(encoding="utf-8")),
    }
