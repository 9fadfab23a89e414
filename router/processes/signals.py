"""The signals of the process that an operator or a platform talks to."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable

_log = logging.getLogger("hookbus.service")


def obey(
    stop: asyncio.Event, *, force: Callable[[], None], reload: Callable[[], None] | None
) -> None:
    """SIGTERM and SIGINT set `stop`, and the second one calls `force`; SIGHUP calls `reload`. Those
    that came while the process started were held back (see `hookbus.router.cli`), and come now."""

    signalled = False

    def on_stop() -> None:
        nonlocal signalled
        if signalled:
            _log.error("stopping at once, what is in hand is not settled")
            force()
            return
        _log.info("stopping")
        signalled = True
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_stop)
    if reload is not None:
        loop.add_signal_handler(signal.SIGHUP, reload)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGHUP))
