"""The service as the process that runs it sees it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from hookbus.router.configuration.config import Config
from hookbus.router.configuration.config_file import parse
from hookbus.router.processes.part import choose
from hookbus.router.processes.service import Service


def _config(folder: Path, sink: str) -> Config:
    file = {"topics": ["siem"], "policy": "fail-closed", "file": {"path": str(folder / sink)}}
    return parse(json.dumps({
        "bus": {"sqlite": {"path": str(folder / "bus.db")}, "create_topics": {"partitions": 1}},
        "ingress": {"agents": {"topics": ["in"]}},
        "routes": {"siem": {"topic": "siem"}},
        "sinks": {sink: file},
        "failures": {
            "topic": "failures", "journal": str(folder / "journal.db"), "journal_only": [sink],
        },
        "dead_letters": {"topic": "dead"},
    }))  # fmt: skip


def test_what_was_prepared_is_not_gone_over_to_once_the_service_ends(tmp_path: Path) -> None:
    """A supervisor may say so too late; no loop starts then."""
    before, after = _config(tmp_path, "one"), _config(tmp_path, "other")

    async def play() -> None:
        stop = asyncio.Event()
        service = Service(before, choose(before, ()))
        running = asyncio.create_task(service.run(stop))
        await service.prepare(after, choose(after, ()))
        stop.set()
        assert await running == 0
        service.apply()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(play())
