"""The service in a process of its own, as an operator runs it, and what can be seen of it."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from hookbus.router.bench.broker import free_port
from hookbus.router.errors import StartupError

PATIENCE: Final = 60.0
"""Seconds after which something that should happen counts as not happening."""
_POLL: Final = 0.05


class Running:
    """A process of the service with its operator server on this machine."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self._process = process
        self._address = address

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels. Raises StartupError if the process has ended."""
        if self._process.poll() is not None:
            raise StartupError("the service that is measured has ended")
        return sum(
            sample.value
            for family in text_string_to_metric_families(self._read("/metrics"))
            for sample in family.samples
            if sample.name == name
        )

    def reaches(self, name: str, value: float) -> None:
        """Return once the metric has this value. Raises StartupError if the process has ended."""
        while self.metric(name) < value:
            time.sleep(_POLL)

    def wait(self) -> None:
        """Until it is ready. Raises StartupError if it never is."""
        deadline = time.monotonic() + PATIENCE
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise StartupError("the service to be measured did not start")
            time.sleep(_POLL)

    def _ready(self) -> bool:
        try:
            return bool(self._read("/readyz"))
        except OSError:
            return False

    def _read(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self._address}{path}", timeout=10) as answer:
            text: str = answer.read().decode()
            return text


def bus_section(folder: Path, bootstrap: str | None) -> str:
    """Which bus a configuration names: Kafka, or a file in the folder if there is nothing to
    connect to."""
    if bootstrap is None:
        return f"sqlite: {{path: {folder}/bus.db}}"
    return f'kafka: {{bootstrap_servers: "{bootstrap}"}}'


@contextmanager
def running(config: str, folder: Path, *arguments: str) -> Iterator[Running]:
    """Starts `hookbus run` with the text of a configuration, which it puts into the folder, and
    waits until it is ready; stops it at the end."""
    file = folder / "hookbus.yaml"
    file.write_text(config)
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-m", "hookbus.router", "run", "-c", str(file), *arguments,
         "--listen", address, "--log-level", "error"],
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        found = Running(process, address)
        found.wait()
        yield found
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
