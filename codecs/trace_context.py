"""W3C Trace Context: which trace an event belongs to (`traceparent` and `tracestate`).

It comes with the event itself (the attribute `traceparent` of AEP, and CloudEvents' extension for
distributed tracing), or in the headers of its Kafka record, as OpenTelemetry's producers write
them; AHP 0.10.1 names no place for it. The event's own counts before that of the record, which
whoever copied the record last may have written.

Nothing of it is trusted: what is malformed is no context, what is passed on is written anew, and
its length is bounded. The ids are hexadecimal digits of a fixed number, machine tokens as AEP's own
envelope has them at every capture level. A `tracestate` is free text of the tracing system, and
goes below `full`, as AHP's foreign extensions do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from hookbus.codecs.headers import Headers

PARENT: Final = "traceparent"
STATE: Final = "tracestate"

_PARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:\Z|(-))"
)
_KNOWN_FLAGS: Final = 0b11
"""Sampled, and random trace id; others mean nothing yet and are passed on as zero."""
_SAMPLED: Final = 0b01
_LONGEST_PARENT: Final = 256

_MEMBER: Final = re.compile(
    r"[a-z0-9][a-z0-9_\-*/@]{0,255}="
    r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MOST_MEMBERS: Final = 32
_LONGEST_READ: Final = 8192
_LONGEST_STATE: Final = 512
_LONG_MEMBER: Final = 128


class TraceContext(Struct, frozen=True):
    """A valid context, as it may be passed on: a `traceparent` of version 00, and a `tracestate`
    if there is one."""

    parent: str
    state: str | None = None

    @property
    def trace_id(self) -> str:
        """32 lowercase hexadecimal digits."""
        return self.parent[3:35]

    @property
    def span_id(self) -> str:
        """16 lowercase hexadecimal digits."""
        return self.parent[36:52]

    @property
    def sampled(self) -> bool:
        """Whether whoever made the context may have recorded its span."""
        return bool(int(self.parent[53:], 16) & _SAMPLED)

    def members(self, level: str) -> dict[str, str]:
        """What a copy at a capture level may carry, by its standard names."""
        if level != "full" or self.state is None:
            return {PARENT: self.parent}
        return {PARENT: self.parent, STATE: self.state}

    def headers(self, level: str) -> Headers:
        """The headers of a record that holds such a copy."""
        if level != "full" or self.state is None:
            return ((PARENT, self.parent.encode()),)
        return ((PARENT, self.parent.encode()), (STATE, self.state.encode()))


def of_attributes(attributes: Mapping[str, Any]) -> TraceContext | None:
    """The context in the attributes of an AEP event or a CloudEvent."""
    parent = attributes.get(PARENT)
    if not isinstance(parent, str):
        return None
    state = attributes.get(STATE)
    return read(parent, state if isinstance(state, str) else None)


def of_headers(headers: Headers) -> TraceContext | None:
    """The context in the headers of a record; of a name that comes twice the last counts."""
    parent = state = None
    for name, value in headers:
        if name == PARENT:
            parent = value
        elif name == STATE:
            state = value
    if parent is None:
        return None
    return read(parent.decode("latin-1"), None if state is None else state.decode("latin-1"))


def read(parent: str, state: str | None) -> TraceContext | None:
    """The context in the two texts; None if the first is malformed. A malformed state is left out
    alone. A higher version is read as far as 00 knows it, as the standard asks."""
    found = _PARENT.match(parent) if len(parent) <= _LONGEST_PARENT else None
    if found is None or (found[1] == "00" and found[5] is not None):
        return None
    flags = int(found[4], 16) & _KNOWN_FLAGS
    known = f"00-{found[2]}-{found[3]}-{flags:02x}"
    return TraceContext(known, None if state is None else _state(state))


def _state(text: str) -> str | None:
    """A state anew: its members in order, shortened as the standard asks if it is too long."""
    if len(text) > _LONGEST_READ:
        return None
    members = [member for part in text.split(",") if (member := part.strip(" \t"))]
    if not members or len(members) > _MOST_MEMBERS:
        return None
    keys = {member.partition("=")[0] for member in members}
    if len(keys) < len(members) or not all(map(_MEMBER.fullmatch, members)):
        return None
    return _shortened(members)


def _shortened(members: list[str]) -> str | None:
    if len(",".join(members)) > _LONGEST_STATE:
        members = [member for member in members if len(member) <= _LONG_MEMBER]
    while len(",".join(members)) > _LONGEST_STATE:
        members.pop()
    return ",".join(members) or None
