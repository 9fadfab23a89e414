"""Writes the recorded session to the file that `hookbus demo` sends.

Run it from the repository after a change to the script: python -m tests.session.record
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from tests.session.play import SOURCE, play
from tests.session.recorder import recording

DEMO: Final = Path(__file__).parents[2] / "router" / "demo_session.jsonl"


async def record(*, source: str = SOURCE) -> list[bytes]:
    """The wire messages of one session."""
    async with recording() as recorder:
        await play(recorder.url, source=source)
    return recorder.messages


def main() -> None:
    messages = asyncio.run(record())
    DEMO.write_bytes(b"".join(message + b"\n" for message in messages))
    print(f"{len(messages)} messages in {DEMO}")


if __name__ == "__main__":
    main()
