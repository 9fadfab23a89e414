"""kill -9 at random moments of a run: every event reaches every sink, in order, or again the same.

The moments come from a seed, which is printed; HOOKBUS_KILL_SEED repeats one, HOOKBUS_KILL_EVENTS
says how many events run (20000), HOOKBUS_KILLS how many processes die (6).
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from hookbus.router.types import Record
from tests.processes import Processes, Service, Setup, lines, publish, records, stream, until

JSON = dict[str, Any]

EVENTS: Final = int(os.environ.get("HOOKBUS_KILL_EVENTS", "20000"))
KILLS: Final = int(os.environ.get("HOOKBUS_KILLS", "6"))
PARTS: Final = ("router", "sink:archive", "sink:copy")
SOURCES: Final = 16


class Run:
    """A router and two sinks, each in a process of its own."""

    def __init__(self, setup: Setup, processes: Processes, chance: random.Random) -> None:
        self._setup = setup
        self._processes = processes
        self._chance = chance
        self._services: dict[str, Service] = {}
        self.killed: list[str] = []
        self.in_the_middle = 0

    def start(self, part: str) -> None:
        self._services[part] = self._processes.run(self._setup, "--only", part)

    def kill(self, part: str, portion: list[bytes]) -> None:
        """Publish a portion, kill a process while it works on it, and start another instead."""
        victim = self._services[part]
        before = _done(victim, part)
        with ThreadPoolExecutor(1) as pool:
            published = pool.submit(publish, self._setup, portion)
            until(lambda: _done(victim, part) > before, lambda: f"{part} works; {victim.stderr}")
            time.sleep(self._chance.uniform(0, 0.3))  # the moment
            done = _done(victim, part) - before
            victim.kill()
            published.result()
        self.in_the_middle += done < len(portion)
        self.killed.append(part)
        self.start(part)

    def stop(self) -> None:
        for service in self._services.values():
            service.stop()


def _done(service: Service, part: str) -> float:
    """How much a process has done, as far as it answers."""
    status, _ = service.get("/metrics")
    if status != 200:
        return 0
    if part == "router":
        return sum(
            service.metrics().by("hookbus_route_events_total", "decision", route="archive").values()
        )
    sink = part.removeprefix("sink:")
    return sum(service.metrics().by("hookbus_sink_records_total", "outcome", sink=sink).values())


class Arrivals:
    """What one sink has, in order; copies of one event are counted."""

    def __init__(self, values: list[bytes]) -> None:
        self.copies: dict[tuple[str, str], list[bytes]] = defaultdict(list)
        self.first: dict[str, list[str]] = defaultdict(list)
        """The ids of each source, in the order of their first arrival."""
        for value in values:
            event = json.loads(value)
            identity = (event["source"], event["id"])
            if identity not in self.copies:
                self.first[event["source"]].append(event["id"])
            self.copies[identity].append(value)
        self.total = len(values)

    @property
    def duplicates(self) -> int:
        return self.total - len(self.copies)

    @property
    def unlike(self) -> list[tuple[str, str]]:
        """Events whose copies are not all the same."""
        return [identity for identity, copies in self.copies.items() if len(set(copies)) > 1]


@pytest.mark.kill
def test_no_event_is_lost_or_reordered_when_processes_are_killed(
    setup: Setup, processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("HOOKBUS_KILL_SEED") or random.randrange(1_000_000))
    setup.route("archive", capture="full")
    setup.route("siem", capture="metadata")
    path = setup.file_sink("archive", "archive", "failures")
    setup.sink("copy", "siem", topic=setup.topic("copy"))
    setup.journal_only("archive")
    setup.write()
    sent = stream(EVENTS, sources=SOURCES)
    begun = time.monotonic()
    run = _killed_run(setup, processes, sent, random.Random(seed))
    arrived = {
        "archive": Arrivals(lines(path)),
        "copy": Arrivals([r.value for r in records(setup, "copy") if r.value is not None]),
    }
    with capsys.disabled():
        found = ", ".join(f"{n} {a.total} ({a.duplicates} again)" for n, a in arrived.items())
        print(
            f"\nkill -9, seed {seed}: {len(sent)} events; killed {', '.join(run.killed)},"
            f" {run.in_the_middle} of them in the middle of their work;"
            f" {found}; {time.monotonic() - begun:.0f} s"
        )
    assert run.in_the_middle > 0
    for name, arrivals in arrived.items():
        assert dict(arrivals.first) == dict(Arrivals(sent).first), (name, seed)
        assert arrivals.unlike == [], (name, seed)


def _killed_run(
    setup: Setup, processes: Processes, sent: list[bytes], chance: random.Random
) -> Run:
    """Publish in portions, with one kill in the middle of each; returns when all is delivered."""
    run = Run(setup, processes, chance)
    for part in PARTS:
        run.start(part)
    size = -(-len(sent) // KILLS)
    for start in range(0, len(sent), size):
        run.kill(chance.choice(PARTS), sent[start : start + size])
    until(lambda: _delivered(setup, len(sent)), "every event at every sink", patience=120)
    run.stop()
    return run


def _delivered(setup: Setup, count: int) -> bool:
    """Whether every sink has had as many different records as there are events."""
    if len(set(lines(setup.folder / "archive.jsonl"))) < count:
        return False
    return len({_identity(record) for record in records(setup, "copy")}) >= count


def _identity(record: Record) -> tuple[bytes, bytes]:
    found = dict(record.headers)
    return found["ce_source"], found["ce_id"]
