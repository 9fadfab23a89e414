"""A hook backend that misbehaves on demand."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from typing import Literal

Mode = Literal["ok", "refuse", "stall", "drip", "reset", "error", "busy"]
TROUBLES: tuple[Mode, ...] = ("refuse", "stall", "drip", "reset", "error", "busy")

REJECTED_EVERY = 97
"""One event in so many is refused for good (422), whatever the mode."""


class Backend:
    """Takes `hooks/observe` notifications on a port of its own; `taken` holds the ids in order."""

    def __init__(self) -> None:
        self.mode: Mode = "ok"
        self.taken: list[str] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def become(self, mode: Mode) -> None:
        """Change how it behaves from the next request on."""
        self.mode = mode
        if mode == "refuse":
            await self.stop()
        elif self._server is None:
            await self.start()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*ends):
            while await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        event = json.loads(await reader.readexactly(length))["params"]["event"]
        mode = self.mode
        if int(event["id"][1:]) % REJECTED_EVERY == 0 and mode == "ok":
            return await self._answer(writer, b"422 Unprocessable Content")
        if mode == "ok":
            self.taken.append(event["id"])
            return await self._answer(writer, b"204 No Content")
        return await self._misbehave(mode, writer)

    async def _misbehave(self, mode: Mode, writer: asyncio.StreamWriter) -> bool:
        if mode == "error":
            return await self._answer(writer, b"503 Service Unavailable")
        if mode == "busy":
            return await self._answer(writer, b"429 Too Many Requests\r\nretry-after: 1")
        if mode == "reset":
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        if mode == "drip":
            for byte in b"HTTP/1.1 204 No Content":
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.5)
            return False
        await asyncio.sleep(30)  # stall
        return False

    async def _answer(self, writer: asyncio.StreamWriter, status: bytes) -> bool:
        writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        return True
