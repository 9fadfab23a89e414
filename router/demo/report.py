"""What the demo shows, and whether it is so: read from the consumers' own files and the metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.router.demo.backend import PolicyBackend

_ANSWER: Final = "user.elicitation.result"
_FILES: Final = {"archive": "full", "siem": "metadata", "pulse": "none"}


class Evidence:
    """What went in and what came out."""

    def __init__(
        self, folder: Path, config: Path, lines: list[bytes], backend: PolicyBackend
    ) -> None:
        self.folder = folder
        self.config = config
        self.backend = backend
        decoder = Decoder()
        decoded = [decoder.decode(line) for line in lines]
        self.sent = [event for event in decoded if isinstance(event, Event)]
        self.metrics: dict[tuple[str, ...], float] = {}

    def policy_events(self, lines: list[bytes]) -> int:
        """How many of these the policy backend's route matches."""
        return sum(_is_policy(event) for event in self.sent[: len(lines)])

    @property
    def failed(self) -> list[Event]:
        """The events that the policy backend never took."""
        return [event for event in self.sent if _is_policy(event)][len(self.backend.taken) :]

    def received(self, consumer: str) -> list[dict[str, Any]]:
        """The events in a consumer's file."""
        path = self.folder / f"{consumer}.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines() if line.endswith(b"}")]

    def failures(self) -> list[dict[str, Any]]:
        """The hook failures that the audit sink received."""
        return [event for event in self.received("siem") if event["type"] == "hook.failure"]

    def complete(self) -> bool:
        """Whether everything that is expected has arrived."""
        expected = {"archive": len(self.sent), "pulse": len(self.sent)}
        expected["siem"] = len(self.sent) + len(self.failed)
        return all(len(self.received(name)) >= count for name, count in expected.items())

    async def read_metrics(self, url: str) -> bool:
        """Read the counters; whether they have caught up with what arrived."""
        async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
            text = await answer.text()
        self.metrics = {
            (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        dead = self.metrics["hookbus_sink_records_total", "dead_lettered", "com.example.policy"]
        received = self.metrics["hookbus_received_total", "agents"]
        return dead == len(self.failed) and received == len(self.sent) + 1


def report(evidence: Evidence) -> bool:
    """Print it; whether all of it is so."""
    _title("hookbus: one agent session, four consumers, one of them broken half-way")
    print(f"{len(evidence.sent)} events of a recorded session, and one value that is no event.")
    _title("One form answer, as each consumer received it")
    for line in _answer_table(evidence):
        print(line)
    _title("The broken backend: com.example.policy (HTTP, fail-open)")
    for line in _breakdown(evidence):
        print(line)
    _title("The counters")
    for line in _counters(evidence.metrics):
        print(line)
    _title("Checked")
    results = list(_facts(evidence))
    for fact, holds in results:
        print(f"  {'ok  ' if holds else 'FAIL'}  {fact}")
    return all(holds for _, holds in results)


def _title(text: str) -> None:
    print(f"\n{text}\n{'─' * len(text)}")


def _answer_table(evidence: Evidence) -> Iterator[str]:
    """A row for each member of the answer, a column for each consumer."""
    columns = {
        consumer: dict(_leaves(_one(evidence.received(consumer), _ANSWER))) for consumer in _FILES
    }
    titles = [f"{level} ({consumer})" for consumer, level in _FILES.items()]
    yield _row("", titles)
    names = dict.fromkeys(name for column in columns.values() for name in column)
    for name in names:
        if name.startswith(("elicitation", "answer", "session", "extensions")):
            shown = name.removeprefix("elicitation.").removeprefix("extensions.dev.hookbus.")
            yield _row(shown, [column.get(name, "·") for column in columns.values()])


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of an event by dotted name; the answer is read from the text that carries it."""
    if name == "elicitation.result.text":
        yield from _leaves(json.loads(value), "answer")
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, f"{name}.{key}" if name else key)
    else:
        yield name, json.dumps(value, ensure_ascii=False)


def _row(name: str, cells: list[str]) -> str:
    return "  " + f"{name:<28}" + "".join(f"{_cut(cell, 22):<24}" for cell in cells).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _breakdown(evidence: Evidence) -> Iterator[str]:
    failures = evidence.failures()
    yield f"  It took {len(evidence.backend.taken)} events, then refused connections for"
    yield f"  {len(evidence.failed)} more; each of these is in the dead letters."
    if failures:
        first = failures[0]
        yield "  Each failure was written to the journal first, then went by demo.failures to"
        yield "  com.example.siem, the audit sink, and never to the backend itself. The first:"
        yield f"      {first['type']} of {first['parentEventId']}: {json.dumps(first['failure'])}"


def _counters(metrics: dict[tuple[str, ...], float]) -> Iterator[str]:
    yield f"  received {metrics['hookbus_received_total', 'agents']:.0f}"
    for route in ("archive", "siem", "pulse", "policy"):
        decisions = ("routed", "filtered", "unmatched", "dead_lettered")
        counts = (f"{d} {metrics['hookbus_route_events_total', d, route]:.0f}" for d in decisions)
        yield f"  route {route:<8} {', '.join(counts)}"
    for sink in ("archive", "siem", "pulse", "policy"):
        outcomes = ("delivered", "dead_lettered", "excluded")
        name = f"com.example.{sink}"
        counts = (f"{o} {metrics['hookbus_sink_records_total', o, name]:.0f}" for o in outcomes)
        yield f"  sink  {sink:<8} {', '.join(counts)}"


def _facts(evidence: Evidence) -> Iterator[tuple[str, bool]]:
    sent = [(event.source, event.id) for event in evidence.sent]
    for consumer in _FILES:
        got = [_identity(e) for e in evidence.received(consumer) if e["type"] != "hook.failure"]
        yield f"{consumer} received every event once, in order", got == sent
    full = (evidence.folder / "archive.jsonl").read_bytes().splitlines()
    yield "full copies are the events byte for byte", full == [e.raw for e in evidence.sent]
    answer = _answer_text(_one(evidence.received("archive"), _ANSWER))
    form = _one(evidence.received("siem"), _ANSWER)["extensions"]["dev.hookbus.form"]
    typed = [answer[field["id"]] for field in form["fields"] if field["type"] == "string"]
    for consumer in ("siem", "pulse"):
        text = (evidence.folder / f"{consumer}.jsonl").read_text(encoding="utf-8")
        yield f"{consumer} holds nothing that the person typed", not any(v in text for v in typed)
    closed = {key: value for key, value in answer.items() if value not in typed}
    yield "siem holds the number and the closed choice of the answer", form["values"] == closed
    parents = sorted(failure["parentEventId"] for failure in evidence.failures())
    yield "each failed delivery is audited once", parents == sorted(e.id for e in evidence.failed)
    yield "the backend did fail", len(evidence.failed) > 0
    yield "the backend was never sent its own failure", "hook.failure" not in evidence.backend.taken
    yield (
        "every counter balances: received = routed + filtered + unmatched + dead-lettered",
        all(_balances(evidence.metrics, route) for route in ("archive", "siem", "pulse", "policy")),
    )


def _balances(metrics: dict[tuple[str, ...], float], route: str) -> bool:
    total = sum(
        value
        for name, value in metrics.items()
        if name[0] == "hookbus_route_events_total" and name[-1] == route
    )
    in_flight = metrics["hookbus_in_flight", "router"]
    return metrics["hookbus_received_total", "agents"] == total + in_flight


def _is_policy(event: Event) -> bool:
    return event.type.startswith(("tool.", "user."))


def _identity(event: dict[str, Any]) -> tuple[str, str]:
    return event["source"], event["id"]


def _one(events: list[dict[str, Any]], event_type: str) -> dict[str, Any]:
    return next(event for event in events if event["type"] == event_type)


def _answer_text(event: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(event["elicitation"]["result"]["text"])["content"]
    return content
