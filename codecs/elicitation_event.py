"""The two elicitation events of AHP, as far as correlation and forms need them."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from hookbus.codecs.elicitation import Action, Mode
from hookbus.codecs.event import Event

ASKED: Final = "user.elicitation.request"
TOLD: Final = "user.elicitation.result"


class ElicitationEvent(Struct, frozen=True):
    """`user.elicitation.request` or `user.elicitation.result` (AHP, interaction payloads).

    `text` is the serialized MCP body, None where it is not selected or not available. `parent` is
    the id of the request that a result answers; `action` is a result's.
    """

    kind: Literal["request", "result"]
    source: str
    id: str
    parent: str | None
    session: str | None
    server: str
    mode: Mode
    time: str
    text: str | None
    action: Action | None = None


def read_elicitation(event: Event) -> ElicitationEvent | None:
    """The elicitation in a valid event, None for events of other types."""
    if event.type == ASKED:
        return _read(event, "request")
    if event.type == TOLD:
        return _read(event, "result")
    return None


def body_pointer(kind: Literal["request", "result"]) -> str:
    """The JSON Pointer of the body's part in the event."""
    return f"/elicitation/{kind}"


def _read(event: Event, kind: Literal["request", "result"]) -> ElicitationEvent:
    elicitation: dict[str, Any] = event.tree["elicitation"]
    part = elicitation.get(kind, {})
    return ElicitationEvent(
        kind,
        event.source,
        event.id,
        event.tree.get("parentEventId"),
        event.session,
        elicitation["server"],
        elicitation["mode"],
        event.time,
        part.get("text") if part.get("selection") == "body" else None,
        elicitation.get("action"),
    )
