"""Writes the generated pages of docs/: `python -m docs.reference`, or `make docs`."""

from __future__ import annotations

from pathlib import Path

from docs.reference import pages

if __name__ == "__main__":
    for path, text in pages(Path(__file__).parent.parent).items():
        path.write_text(text, encoding="utf-8")
        print(path)
