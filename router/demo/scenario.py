"""The demo's play: a folder, a service, a session, a breakdown, a report."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import aiohttp

from hookbus.router import build_bus
from hookbus.router.commands.common import load_config
from hookbus.router.commands.publish import key_of
from hookbus.router.demo.backend import PolicyBackend
from hookbus.router.demo.report import Evidence, report
from hookbus.router.types import Output

SESSION: Final = Path(__file__).parent.with_name("demo_session.jsonl")
PATIENCE: Final = 30.0
"""Seconds that any one thing may take."""

_CONFIG: Final = """\
bus:
  sqlite: {{path: "{folder}/bus.db"}}
  create_topics: {{partitions: 2}}
ingress:
  agents: {{topics: [agents.hooks], capture: full}}
routes:
  archive: {{capture: full, topic: demo.archive}}
  siem: {{capture: metadata, topic: demo.siem}}
  pulse: {{capture: none, topic: demo.pulse}}
  policy: {{match: {{type: ["tool.*", "user.*"]}}, capture: metadata, topic: demo.policy}}
sinks:
  com.example.archive:
    topics: [demo.archive]
    file: {{path: "{folder}/archive.jsonl"}}
    policy: fail-closed
  com.example.siem:
    topics: [demo.siem, demo.failures]
    file: {{path: "{folder}/siem.jsonl"}}
    policy: fail-closed
  com.example.pulse:
    topics: [demo.pulse]
    file: {{path: "{folder}/pulse.jsonl"}}
    policy: fail-closed
  com.example.policy:
    topics: [demo.policy]
    http: {{url: "http://127.0.0.1:{port}/hooks"}}
    policy: fail-open
    deadline: 500ms
failures:
  topic: demo.failures
  journal: "{folder}/journal.db"
  journal_only: [com.example.siem]
dead_letters: {{topic: demo.dead}}
metrics: {{listen: "127.0.0.1:{metrics}"}}
"""


async def play(*, keep: bool) -> int:
    """Returns the exit code: 0 only if everything that was shown really happened."""
    with contextlib.ExitStack() as stack:
        if keep:
            folder = Path(tempfile.mkdtemp(prefix="hookbus-demo-"))
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hookbus-demo-")))
        backend = PolicyBackend()
        await backend.start()
        config = folder / "hookbus.yaml"
        port = _free_port()
        config.write_text(_CONFIG.format(folder=folder, port=backend.port, metrics=port))
        try:
            async with _service(config, f"http://127.0.0.1:{port}") as url:
                shown = report(await _send_and_break(folder, config, backend, url))
                if keep:
                    print(f"\nRunning on: {folder} (configuration, bus, files), {url}/metrics")
                    print("Ctrl-C stops it.")
                    await asyncio.Event().wait()
        except (TimeoutError, asyncio.CancelledError):
            return 1
        finally:
            await backend.break_down()
    return 0 if shown else 1


async def _send_and_break(
    folder: Path, config_file: Path, backend: PolicyBackend, url: str
) -> Evidence:
    lines = SESSION.read_bytes().splitlines()
    evidence = Evidence(folder, config_file, lines, backend)
    half = len(lines) // 2
    await _publish(config_file, lines[:half])
    await _until(lambda: len(backend.taken) >= evidence.policy_events(lines[:half]))
    await backend.break_down()
    await _publish(config_file, [*lines[half:], b'{"not": "an event"}'])
    await _until(evidence.complete)
    # The counters follow their settlement, and the last one is that of the audit.
    await _until_async(lambda: evidence.read_metrics(url))
    return evidence


async def _publish(config_file: Path, lines: list[bytes]) -> None:
    bus = build_bus.bus(load_config(config_file))
    try:
        await bus.open(["agents.hooks"])
        await bus.publish([Output("agents.hooks", key_of(line), line) for line in lines])
    finally:
        await bus.close()


@contextlib.asynccontextmanager
async def _service(config: Path, url: str) -> AsyncIterator[str]:
    """`hookbus run` as a process of its own, ready."""
    with (config.parent / "service.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hookbus.router", "run", "-c", str(config), stderr=log
        )
        try:
            await _until_async(lambda: _is_ready(url, process))
            yield url
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await process.wait()


async def _is_ready(url: str, process: asyncio.subprocess.Process) -> bool:
    if process.returncode is not None:
        raise TimeoutError("the service ended")
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def _until(condition: Callable[[], bool]) -> None:
    async def check() -> bool:
        return condition()

    await _until_async(check)


async def _until_async(condition: Callable[[], Awaitable[bool]]) -> None:
    """What is waited for happens in other processes, so it has to be looked at again and again."""
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
