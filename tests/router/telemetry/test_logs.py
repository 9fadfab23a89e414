"""Logs hold what we chose to say, and nothing of what an error quotes."""

import json
import subprocess
import sys

_FORGOTTEN = """
import asyncio
from hookbus.router.telemetry import logs

async def fail():
    raise ValueError("a secret")

async def main():
    task = asyncio.create_task(fail())
    await asyncio.wait([task])

logs.configure()
asyncio.run(main())
"""


def test_an_error_that_nobody_looked_at_is_told_without_its_text():
    """asyncio reports it when the task is collected, and would quote the exception."""
    ran = subprocess.run(
        [sys.executable, "-c", _FORGOTTEN], capture_output=True, check=True, text=True
    )
    (line,) = map(json.loads, ran.stderr.splitlines())
    assert (line["message"], line["error"]) == ("Task exception was never retrieved", "ValueError")
    assert "secret" not in ran.stderr
