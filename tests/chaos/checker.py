"""Reads every sink and topic at the end, and says what is true of them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Row = tuple[str, str, bool]
"""What was checked, what was counted, whether it holds."""


class Evidence(NamedTuple):
    """What a run left behind. `sent` holds the ids in the order of their acknowledgements; the
    number in an id says its place and, modulo `sources`, its source."""

    sent: list[str]
    sources: int
    archive: Path
    audit: Path
    taken: dict[str, list[str]]
    letters: list[dict[str, Any]]
    ids_at: dict[tuple[str, int, int], str]
    """(topic, partition, offset) -> event id, for the topics that sinks read."""


def check(evidence: Evidence) -> Iterator[Row]:
    """One row for each thing that has to hold."""
    sent = evidence.sent
    given_up = defaultdict(list)
    for letter in evidence.letters:
        where = (letter["topic"], letter["partition"], letter["offset"])
        given_up[letter.get("sink")].append(evidence.ids_at.get(where, "?"))
    yield "refused input", f"{len(given_up[None])}", not given_up[None]
    files = {"archive": _events(evidence.archive), "audit": _events(evidence.audit)}
    for name, events in files.items():
        ids = [event["id"] for event in events if event["type"] != "hook.failure"]
        yield from _delivery(name, ids, given_up[name], evidence)
        yield f"{name}: duplicates identical", *_identical(events)
    for name, taken in evidence.taken.items():
        yield from _delivery(name, taken, given_up[name], evidence)
    yield from _failures(files["audit"], given_up, evidence.taken)
    yield "events", f"{len(sent)}", len(set(sent)) == len(sent)


def _delivery(name: str, ids: list[str], given_up: list[str], evidence: Evidence) -> Iterator[Row]:
    missing = set(evidence.sent) - set(ids) - set(given_up)
    strangers = set(ids) - set(evidence.sent)
    counts = (
        f"{len(set(ids))} delivered, {len(ids) - len(set(ids))} again, {len(set(given_up))} dead"
    )
    yield f"{name}: each event delivered or dead-lettered", counts, not missing and not strangers
    # One that was given up, and comes again because that was not committed, comes late.
    late = set(ids) & set(given_up)
    swapped = 0
    last: dict[int, int] = {}
    for number in dict.fromkeys(int(each[1:]) for each in ids if each not in late):
        source = number % evidence.sources
        swapped += number < last.get(source, -1)
        last[source] = max(number, last.get(source, -1))
    counts = f"{swapped} out of order, {len(late)} after all"
    yield f"{name}: in order per source", counts, swapped == 0


def _failures(
    audit: list[dict[str, Any]], given_up: dict[Any, list[str]], taken: dict[str, list[str]]
) -> Iterator[Row]:
    failures = [event for event in audit if event["type"] == "hook.failure"]
    by_delivery: dict[tuple[str, str], set[str]] = defaultdict(set)
    for event in failures:
        by_delivery[event["failure"]["backendId"], event["parentEventId"]].add(event["id"])
    expected = {(sink, each) for sink, ids in given_up.items() if sink for each in ids}
    unrecorded = expected - set(by_delivery)
    many = [delivery for delivery, ids in by_delivery.items() if len(ids) != 1]
    # A rebalance may drop the dead letter of a failure; its event comes again and is delivered.
    delivered = {("open", each) for each in taken.get("open", ())}
    stops = Counter(sink for sink, _ in set(by_delivery) - expected - delivered)
    yield (
        "each failed delivery has one failure record at the audit sink",
        f"{len(expected)} given up, {sum(stops.values())} stops, {len(failures)} records",
        not unrecorded and not many and set(stops) <= {"closed", "archive"},
    )


def _identical(events: Iterable[dict[str, Any]]) -> tuple[str, bool]:
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for event in events:
        seen[event["source"], event["id"]].add(json.dumps(event))
    different = sum(len(spellings) > 1 for spellings in seen.values())
    return f"{different} different", different == 0


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]
