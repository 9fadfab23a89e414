"""The journal: every failed delivery is written here first, on this machine's own disk.

A bus like any other, with two topics. What is in `FORWARDED` goes on to the failures topic as soon
as the bus takes it; what is in `KEPT` stays: failures to deliver a failure, and those of sinks
that no audit sink can speak for. A delivery that fails again after a restart is the
same failure: the changelog `IDS` has the ids of all that are recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import orjson

from hookbus.codecs.formats import is_uri
from hookbus.codecs.headers import Attributes, read_headers, write_headers
from hookbus.codecs.strict import encode
from hookbus.codecs.trace_context import TraceContext, of_headers
from hookbus.policies.failures import HOOK_FAILURE, Affected, Policy, hook_failure
from hookbus.policies.faults import Reason
from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.errors import OutputTooLarge
from hookbus.router.processes.persistence import Persistence
from hookbus.router.replays.attempts import attempts_of
from hookbus.router.types import Bus, Output, Reader, Record, Settlement

_log = logging.getLogger("hookbus.journal")

FORWARDED: Final = "failures"
KEPT: Final = "failures.kept"
TOPICS: Final = (FORWARDED, KEPT)
IDS: Final = "failures.ids"
CHANGELOGS: Final = {IDS: FORWARDED}
GROUP: Final = "forwarder"

_BATCH: Final = 200
_WAIT: Final = 0.5


class Journal:
    """Records failed deliveries durably. `now` is the wall clock, in seconds since the epoch."""

    def __init__(self, bus: SqliteBus, *, version: str, now: Callable[[], float]) -> None:
        self._bus = bus
        self._version = version
        self._now = now

    async def record(
        self, record: Record, sink: str, reason: Reason, policy: Policy, *, forward: bool
    ) -> bool:
        """Durable on return; whether it is new. A failure to deliver a `hook.failure` is never
        forwarded."""
        attributes, event = read_headers(record.headers), _lenient(record.value)
        affected = _affected(record, attributes, event)
        time = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        failure = hook_failure(
            affected, sink, reason, policy, time=time.replace("+00:00", "Z"), version=self._version
        )
        topic = FORWARDED if forward and not _is_failure(attributes, event) else KEPT
        new = await self._bus.publish_once(
            [_output(topic, failure, of_headers(record.headers))], IDS, failure["id"].encode()
        )
        _log.warning(
            "delivery failed",
            extra={"sink": sink, "reason": reason, "policy": policy, "topic": record.topic,
                   "partition": record.partition, "offset": record.offset},
        )  # fmt: skip
        return new


async def forward(
    journal: Reader, bus: Bus, topic: str, persist: Persistence, stop: asyncio.Event
) -> None:
    """Move journaled failures to the failures topic until `stop` is set; survives a bus that is
    away, because nothing is settled in the journal before the bus has it."""
    while not stop.is_set():
        records = await persist(lambda: journal.receive(_BATCH, _WAIT))
        if records:
            outputs = [
                Output(topic, record.key, record.value, record.headers)
                for record in records
                if record.value is not None
            ]
            try:
                await persist(partial(bus.publish, outputs))
            except OutputTooLarge:
                await _publish_each(outputs, bus, persist)
            await persist(partial(journal.settle, [Settlement(record) for record in records]))


async def _publish_each(outputs: list[Output], bus: Bus, persist: Persistence) -> None:
    """A failure that the bus can't take stays in the journal alone, and holds up no other."""
    for output in outputs:
        try:
            await persist(partial(bus.publish, [output]))
        except OutputTooLarge:
            _log.error("a hook failure is too large for the bus; the journal alone has it")


def _output(topic: str, failure: dict[str, Any], trace: TraceContext | None) -> Output:
    """The record of a failure, in the trace of the event that it is about."""
    headers = write_headers(
        Attributes(
            id=failure["id"],
            source=failure["source"],
            type=HOOK_FAILURE,
            time=failure["time"],
            capture="metadata",
        )
    )
    if trace is not None:
        headers += trace.headers("metadata")
    return Output(topic, failure["source"].encode(), encode(failure), headers)


def _lenient(value: bytes | None) -> Any:
    """The value if it is JSON: what a sink subscribes to need not have come through the router."""
    try:
        return orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None


def _is_failure(attributes: Attributes | None, event: Any) -> bool:
    if attributes is not None:
        return attributes.type == HOOK_FAILURE
    return isinstance(event, dict) and event.get("type") == HOOK_FAILURE


def _own(event: Any, name: str) -> str | None:
    value = event.get(name) if isinstance(event, dict) else None
    return value if isinstance(value, str) else None


def _affected(record: Record, attributes: Attributes | None, event: Any) -> Affected:
    """The identity of the event; of a record that has none, its coordinates."""
    session = event.get("session") if isinstance(event, dict) else None
    session_id = session.get("id") if isinstance(session, dict) else session
    if not isinstance(session_id, str) or not session_id:
        session_id = None
    replay = attempts_of(record.headers)
    if attributes is not None:
        return Affected(attributes.source, attributes.id, session_id, replay)
    source, identity = _own(event, "source"), _own(event, "id")
    if source and identity and is_uri(source):
        return Affected(source, identity, session_id, replay)
    return Affected(f"urn:hookbus:{record.topic}", f"{record.partition}-{record.offset}")
