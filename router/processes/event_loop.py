"""What runs the coroutines of a process."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import socket
from functools import partial
from typing import Any, Literal

from hookbus.router.errors import StartupError
from hookbus.router.sinks.threads import in_thread

EventLoop = Literal["auto", "asyncio", "uvloop"]


def runner(wanted: EventLoop) -> asyncio.Runner:
    """To be entered. `auto` is uvloop where it is installed. Raises StartupError if uvloop is asked
    for and isn't."""
    installed = importlib.util.find_spec("uvloop") is not None
    if wanted == "asyncio" or (wanted == "auto" and not installed):
        return asyncio.Runner(loop_factory=_Loop)
    if not installed:
        raise StartupError("event_loop: uvloop is not installed (pip install 'hookbus[speed]')")
    return asyncio.Runner(loop_factory=importlib.import_module("uvloop").new_event_loop)


class _Loop(asyncio.SelectorEventLoop):
    """asyncio's own, except that it ends without waiting for a name server: it would look names up
    in its executor, whose threads it joins."""

    async def getaddrinfo(self, host: Any, port: Any, **how: Any) -> Any:
        return await in_thread(partial(socket.getaddrinfo, host, port, **how))
