"""What runs the coroutines of a process."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from typing import Literal

from hookbus.router.errors import StartupError

EventLoop = Literal["auto", "asyncio", "uvloop"]


def runner(wanted: EventLoop) -> asyncio.Runner:
    """To be entered. `auto` is uvloop where it is installed. Raises StartupError if uvloop is asked
    for and isn't."""
    installed = importlib.util.find_spec("uvloop") is not None
    if wanted == "asyncio" or (wanted == "auto" and not installed):
        return asyncio.Runner()
    if not installed:
        raise StartupError("event_loop: uvloop is not installed (pip install 'hookbus[speed]')")
    return asyncio.Runner(loop_factory=importlib.import_module("uvloop").new_event_loop)
