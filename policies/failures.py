"""Failed deliveries: the `hook.failure` event that records one, and who may be relied on for it.

AHP, interaction payloads: the routing of a hook failure must not depend on the failing backend
receiving its own failure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from hookbus.policies.faults import Reason

Policy = Literal["fail-open", "fail-closed"]

HOOK_FAILURE: Final = "hook.failure"


class Affected(Struct, frozen=True):
    """The event whose delivery failed."""

    source: str
    id: str
    session: str | None = None
    replay: int = 0
    """How often it had been replayed: a replay is a delivery of its own."""


class Domains(Struct, frozen=True):
    """Which sinks fail together: sink name -> failure domain."""

    of: Mapping[str, str]

    def share(self, sink: str, backend: str) -> bool:
        """Whether `sink` may not be relied on for a failure of `backend`, a sink or a stranger."""
        return sink == backend or self.of.get(sink) == self.of.get(backend, backend)

    def witnesses(self, sink: str, audit: tuple[str, ...]) -> tuple[str, ...]:
        """The audit sinks that a failure of `sink` can be entrusted to."""
        return tuple(name for name in audit if not self.share(name, sink))


def failure_id(affected: Affected, backend: str) -> str:
    """The same for every retry of one delivery, so that retries don't multiply the record."""
    identity = f"{backend}\x00{affected.source}\x00{affected.id}"
    if affected.replay:
        identity += f"\x00{affected.replay}"
    return f"hookbus-failure-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


def hook_failure(
    affected: Affected, backend: str, reason: Reason, policy: Policy, *, time: str, version: str
) -> dict[str, Any]:
    """The AHP event that records one failed delivery; `time` is RFC 3339.

    It has the source and session of the affected event, because `parentEventId` is scoped to the
    source (AHP, task-workspace-lineage).
    """
    event: dict[str, Any] = {
        "id": failure_id(affected, backend),
        "source": affected.source,
        "type": HOOK_FAILURE,
        "time": time,
        "harness": {"name": "hookbus", "version": version},
        "parentEventId": affected.id,
        "failure": {"backendId": backend, "reason": reason, "policy": policy},
    }
    if affected.session is not None:
        event["session"] = {"id": affected.session}
    return event


def named_backend(event: Any) -> str | None:
    """The backend that a `hook.failure` event says has failed; None for any other value."""
    if not isinstance(event, Mapping) or event.get("type") != HOOK_FAILURE:
        return None
    failure = event.get("failure")
    backend = failure.get("backendId") if isinstance(failure, Mapping) else None
    return backend if isinstance(backend, str) else None
