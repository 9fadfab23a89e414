"""The headers of the requests that an HTTP sink makes. Nothing in them is a producer's own text; a
trace context is read and written anew."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import orjson

from hookbus.codecs.trace_context import of_headers
from hookbus.router.replays.attempts import origin_of, place_of
from hookbus.router.types import Record

OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that the sink and its connection answer for."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_VALUE = re.compile(r"([\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?)?")
_CREDENTIAL = re.compile(r"[\x21-\x7e]+")


def header_problems(headers: Mapping[str, str], *, bearer: bool) -> Iterator[str]:
    """What is wrong with configured headers, naming them and never quoting a value. With `bearer`
    the sink sets `authorization` itself."""
    ours = OURS | {"authorization"} if bearer else OURS
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            yield f"headers: {name!r} is not a header name"
        elif name.lower() in ours:
            yield f"headers: {name} is set by the sink"
        if not _VALUE.fullmatch(value):
            yield f"headers: the value of {name!r} has characters that no header may have"
    for name, count in Counter(map(str.lower, headers)).items():
        if count > 1:
            yield f"headers: {name!r} is given twice"


def authorization(token: str) -> str | None:
    """The header value for a bearer token; None for a token that would break the header."""
    return f"Bearer {token}" if _CREDENTIAL.fullmatch(token) else None


def traced(record: Record) -> dict[str, str]:
    """The headers that tell a backend which trace the event belongs to, where that is known."""
    trace = of_headers(record.headers)
    return {} if trace is None else trace.members("full")  # the record has what its level allows


def idempotency_key(sink: str, topics: Collection[str], record: Record) -> str:
    """The same for every delivery of an event from one topic through a sink, replays included, so
    that a backend can tell a duplicate from another view of the event; 64 hex digits, because
    identifiers are the producer's text. `topics` are those that the sink subscribes to: a record of
    another one was replayed for it, and hookbus has written there where it came from."""
    origin = None if record.topic in topics else origin_of(record.headers)
    place = origin or place_of(record)
    headers = dict(record.headers)
    source, event = headers.get("ce_source"), headers.get("ce_id")
    if source is not None and event is not None:
        identity = ["event", sink, place.topic, source.hex(), event.hex()]
    else:
        identity = ["record", sink, f"{place.topic}-{place.partition}-{place.offset}"]
    return hashlib.sha256(orjson.dumps(identity)).hexdigest()
