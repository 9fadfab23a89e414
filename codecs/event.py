"""An event as it travels through the pipeline."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct


class Event(Struct, frozen=True):
    """One valid event. Its identity is `(source, id)`, never `id` alone.

    `time` is an RFC 3339 date-time, `session` the session's id, `harness` the harness's name;
    `tree` and `raw` are the event itself, without the message that carried it. `tree` is shared:
    whoever wants another one makes a copy.
    """

    protocol: Literal["ahp"]
    type: str
    source: str
    id: str
    time: str
    session: str | None
    harness: str
    tree: dict[str, Any]
    raw: bytes
