"""One AHP event as the JSON-RPC notification that carries it to a hook backend."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

_HEAD = b'{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":'
_TAIL = b"}}"


class _Event(Struct):
    harness: Raw
    type: str


_decoder = msgspec.json.Decoder(_Event)


def is_event(value: bytes) -> bool:
    """Whether a value is one JSON object with the members that tell an AHP event. What a sink
    subscribes to need not have come through the router, and another protocol's events have no place
    in the notification."""
    try:
        _decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def notification(event: bytes) -> bytes:
    """The `hooks/observe` notification of `event`, which is one valid AHP event as JSON.

    The event's bytes go in untouched: what was validated is what is sent.
    """
    return _HEAD + event + _TAIL
