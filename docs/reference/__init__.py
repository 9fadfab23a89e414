"""Makes the reference pages from the code that they describe. No part of the service."""

from __future__ import annotations

from pathlib import Path

from docs.reference import configuration, metrics


def pages(folder: Path) -> dict[Path, str]:
    """What each generated page in `folder` has to hold."""
    return {
        folder / "configuration.md": configuration.page(),
        folder / "metrics.md": metrics.page(),
    }
