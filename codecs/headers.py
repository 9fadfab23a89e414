"""The headers of a record: CloudEvents attributes, so that consumers can filter without parsing.

Names are those of the CloudEvents Kafka binding (`ce_id` …). Values are written as its HTTP binding
writes them (1.0.2, section 3.1.3.2): identifiers are chosen by producers, and in this form no
control character, quote or foreign letter of theirs reaches a header, a log line or a terminal.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from msgspec import Struct

Headers = tuple[tuple[str, bytes], ...]

SPECVERSION: Final = ("ce_specversion", b"1.0")

_UNSAFE = re.compile(rb'[^\x21-\x7e]|["%]')
_SAFE = bytes(byte for byte in range(0x21, 0x7F) if byte not in b'"%')


class Attributes(Struct, frozen=True):
    """What the headers of a record say of its event. `type` is the event's own, such as
    `tool.before`; `body` is the code of a nonconforming body, `stream` the rule that
    an AEP stream breaks with this event."""

    id: str
    source: str
    type: str
    capture: str
    time: str | None = None
    body: str | None = None
    stream: str | None = None


def write_headers(attributes: Attributes) -> Headers:
    """The headers of a record that holds the event; every value is printable ASCII."""
    named = identity_headers(
        attributes.id, attributes.source, attributes.type, attributes.time, attributes.stream
    )
    return named + capture_headers(attributes.capture, attributes.body)


def identity_headers(
    identity: str, source: str, kind: str, time: str | None, stream: str | None
) -> Headers:
    """Those that all copies of an event share."""
    headers: Headers = (
        SPECVERSION,
        ("ce_id", escape(identity)),
        _recurring("ce_source", source),
        _recurring("ce_type", kind),
    )
    if time is not None:
        headers += (("ce_time", escape(time)),)
    if stream is not None:
        headers += (("hookbus-stream", escape(stream)),)
    return headers


@lru_cache(64)
def capture_headers(capture: str, body: str | None) -> Headers:
    """Those that depend on the copy."""
    level = ("hookbus-capture", escape(capture))
    return (level,) if body is None else (level, ("hookbus-body", escape(body)))


def read_headers(headers: Headers) -> Attributes | None:
    """The inverse; None if the headers are not those of an event. Of a name that comes twice the
    last counts, as everywhere in Kafka."""
    values = {name: unescape(value) for name, value in headers if name in _MEMBERS}
    members = {_MEMBERS[name]: value for name, value in values.items() if value is not None}
    if not members.keys() >= _REQUIRED or values.get("ce_specversion") != "1.0":
        return None
    del members["specversion"]
    return Attributes(**members)


_MEMBERS: Final = {
    "ce_specversion": "specversion",
    "ce_id": "id",
    "ce_source": "source",
    "ce_type": "type",
    "ce_time": "time",
    "hookbus-capture": "capture",
    "hookbus-body": "body",
    "hookbus-stream": "stream",
}
_REQUIRED: Final = {"specversion", "id", "source", "type", "capture"}


def escape(text: str) -> bytes:
    """Percent-encode whatever is not printable ASCII, and space, double quote and percent."""
    value = text.encode()
    if not value.translate(None, _SAFE):
        return value
    return _UNSAFE.sub(lambda match: b"%%%02X" % match[0][0], value)


def _recurring(name: str, text: str) -> tuple[str, bytes]:
    """A header that many records have."""
    return _recalled(name, text) if len(text) <= _LONGEST_RECALLED else _header(name, text)


def _header(name: str, text: str) -> tuple[str, bytes]:
    return name, escape(text)


_recalled = lru_cache(2048)(_header)
_LONGEST_RECALLED: Final = 256


def unescape(value: bytes) -> str | None:
    """The inverse of `escape`; None for bytes that stand for no text."""
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeDecodeError:
        return None
