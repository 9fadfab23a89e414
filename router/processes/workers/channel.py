"""What a supervisor and its workers say to each other, over a pair of sockets that nobody else has.

A message is four bytes of length and a MessagePack value. Secrets may pass here, and nowhere else
between the processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from hookbus.router.configuration.config import Config
from hookbus.router.configuration.units import Duration, Size
from hookbus.router.processes.part import Part
from hookbus.router.processes.workers.merged_metrics import Family

_LENGTH: Final = 4
_CLOSING: Final = 2.0


class Start(Struct, frozen=True, tag=True):
    """The first message to a worker. `number` tells the workers of the router apart; `version` is
    that of the supervisor, which an upgrade may have left behind."""

    name: str
    number: int | None
    version: str
    config: Config
    part: Part
    log_level: str


class Prepare(Struct, frozen=True, tag=True):
    """Do what may fail of a change to this configuration; answered by a `Ready` of this number."""

    number: int
    config: Config
    part: Part


class Apply(Struct, frozen=True, tag=True):
    """Go over to what was prepared."""


class Discard(Struct, frozen=True, tag=True):
    """Stay; forget what was or is being prepared."""


class Stop(Struct, frozen=True, tag=True):
    """Settle what is in hand and end."""


class Report(Struct, frozen=True, tag=True):
    """How a worker is, now and then."""

    metrics: tuple[Family, ...]
    unhealthy: list[str]
    unready: list[str]


class Ready(Struct, frozen=True, tag=True):
    """The answer to `Prepare`: what prevents it, or nothing."""

    number: int
    problems: list[str]


Order = Start | Prepare | Apply | Discard | Stop
Word = Report | Ready

Incoming = TypeVar("Incoming")


class Channel(Generic[Incoming]):
    """One end; what comes from the other is of the type `incoming`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, incoming: Any
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = msgspec.msgpack.Decoder(incoming, dec_hook=_decode)

    @classmethod
    async def open(cls, end: socket.socket, incoming: Any) -> Channel[Incoming]:
        return cls(*await asyncio.open_connection(sock=end), incoming)

    async def receive(self) -> Incoming | None:
        """The next message; None once the other end is gone. Raises MsgspecError."""
        try:
            length = await self._reader.readexactly(_LENGTH)
            message = await self._reader.readexactly(int.from_bytes(length))
        except (asyncio.IncompleteReadError, OSError):
            return None
        found: Incoming = self._decoder.decode(message)
        return found

    def send(self, message: Order | Word) -> None:
        """Never waits; what is sent to an end that is gone is lost."""
        if not self._writer.is_closing():
            encoded = msgspec.msgpack.encode(message, enc_hook=_encode)
            self._writer.write(len(encoded).to_bytes(_LENGTH) + encoded)

    @property
    def idle(self) -> bool:
        """Whether everything that was sent is on its way."""
        return self._writer.transport.get_write_buffer_size() == 0

    async def close(self) -> None:
        """Let what was sent arrive, unless the other end is gone or doesn't listen."""
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await self._writer.wait_closed()


def _encode(value: Any) -> Any:
    """Their units are gone by now: seconds, and bytes."""
    if isinstance(value, Duration):
        return float(value)
    if isinstance(value, Size):
        return int(value)
    raise NotImplementedError


def _decode(kind: type, value: Any) -> Any:
    if kind is Duration or kind is Size:
        return kind(value)
    raise NotImplementedError
