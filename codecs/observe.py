"""One AHP event as the JSON-RPC notification that carries it to a hook backend."""

from __future__ import annotations

_HEAD = b'{"jsonrpc":"2.0","method":"hooks/observe","params":{"protocolVersion":"draft","event":'
_TAIL = b"}}"


def notification(event: bytes) -> bytes:
    """The `hooks/observe` notification of `event`, which is one valid AHP event as JSON.

    The event's bytes go in untouched: what was validated is what is sent.
    """
    return _HEAD + event + _TAIL
