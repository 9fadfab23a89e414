"""Reads what a file sink writes: whole lines only, through rotation, and on where it stopped.

    python file_reader.py /var/lib/hookbus/archive.jsonl --state archive.place

Prints each event. A last line without its newline is one that is being written, or that a crash has
torn: it is left until it is whole. A sink may take lines back that it could not make durable, and
writes them again: like after a crash of this reader, an event may come twice, and `(source, id)`
tells.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

PORTION = 1000
"""How many lines may come again after a crash."""


class Place(NamedTuple):
    """The end of the last line that was handled: in which file, and what the line was."""

    inode: int = 0
    offset: int = 0
    line: str = ""


def listing(path: Path) -> dict[Path, int]:
    """The sink's files and their inodes, the oldest first: `path.2`, `path.1`, `path`."""
    found = {}
    for name in path.parent.glob(f"{path.name}*"):
        number = name.name.removeprefix(path.name)
        with suppress(FileNotFoundError):  # renamed just now
            if number == "" or number[1:].isdecimal():
                found[name] = (int(number[1:] or 0), name.stat().st_ino)
    return {name: found[name][1] for name in sorted(found, key=found.__getitem__, reverse=True)}


def generations(path: Path, stack: ExitStack) -> dict[int, BinaryIO]:
    """The sink's files by inode, the oldest first, opened while none was renamed."""
    while True:
        names = listing(path)
        with suppress(FileNotFoundError):
            files = [stack.enter_context(name.open("rb")) for name in names]
            opened = {os.fstat(file.fileno()).st_ino: file for file in files}
            if listing(path) == names and list(opened) == list(names.values()):
                return opened


def resumed(file: BinaryIO, place: Place) -> int:
    """Where to read on in the file that the place is in: at its start, if lines were taken back."""
    line = place.line.encode()
    file.seek(max(0, place.offset - len(line)))
    return place.offset if file.read(len(line)) == line else 0


def new_lines(path: Path, place: Place) -> Iterator[Place]:
    """Each line since the place, in order; one that is not whole is none."""
    with ExitStack() as stack:
        files = generations(path, stack)
        if place.inode and place.inode not in files:
            print("files were rotated away before they were read", file=sys.stderr)
        behind = place.inode in files
        for inode, file in files.items():
            if behind and inode != place.inode:
                continue  # handled before
            offset = resumed(file, place) if behind else 0
            behind = False
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                offset += len(line)
                yield Place(inode, offset, line.decode())


def load(state: Path) -> Place:
    return Place(*json.loads(state.read_text())) if state.exists() else Place()


def save(state: Path, place: Place) -> None:
    """Whole or not at all."""
    beside = state.with_name(state.name + ".new")
    beside.write_text(json.dumps(place))
    beside.replace(state)


def handle(line: str) -> None:
    """Your work. It is done when this returns."""
    print(line, end="", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the events of a file sink.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--state", type=Path, required=True, help="where the place is kept")
    options = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    place = saved = load(options.state)
    while not stop.is_set():
        for number, reached in enumerate(new_lines(options.path, place)):
            handle(reached.line)
            place = reached
            if stop.is_set() or number == PORTION:
                break
        if place == saved:
            stop.wait(0.2)
        else:
            save(options.state, place)
            saved = place


if __name__ == "__main__":
    main()
