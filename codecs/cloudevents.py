"""CloudEvents 1.0 around an event, out and back in: AEP as its bridge says (AEP-0005 §2), AHP under
a prefix of its own.

AEP: an attribute of the envelope becomes one of CloudEvents (`type` as `dev.aep.TYPE`, `session` as
`aepsessionid` …), `data` stays `data`, and extension attributes keep their names. Names that would
be mistaken for another attribute on either side are dropped and counted.

AHP: `data` is the whole event, byte for byte, and the attributes repeat what consumers filter by:

    id, source, time     the event's own
    type                 `org.agenthooksprotocol.TYPE`
    ahpsession           the session's id, where there is one, and the level is not `none`
    ahpharness           the harness's name
    hookbuscapture       the level of the copy
    traceparent          the trace that the event belongs to, where it is known (CloudEvents'
                         extension for distributed tracing); at `full` with `tracestate`

On the way in the event inside counts; attributes that say something else are refused.

In Kafka's binary form the attributes are the headers `ce_NAME` and `content-type`, and the value of
the record is the data (CloudEvents Kafka binding 1.0.2). Headers are texts there: an extension
attribute that was a number or a boolean comes back as its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from hookbus.codecs.event import Event, Protocol
from hookbus.codecs.headers import Headers
from hookbus.codecs.strict import encode
from hookbus.codecs.trace_context import TraceContext

PREFIXES: Final[Mapping[Protocol, str]] = {"ahp": "org.agenthooksprotocol.", "aep": "dev.aep."}

CONTENT_TYPE: Final = ("content-type", b"application/cloudevents+json; charset=UTF-8")
"""The header of a record that holds a structured CloudEvent."""

JSON: Final = "application/json"
SPECVERSION: Final = "1.0"
RENAMED: Final[Mapping[str, str]] = {
    "aep": "aepversion",
    "agent": "aepagentid",
    "session": "aepsessionid",
    "run": "aeprunid",
    "step": "aepstep",
    "seq": "aepsequence",
    "epoch": "aepepoch",
    "cause": "aepcausationid",
    "severity": "aepseverity",
    "capture": "aepcapture",
}
NAMED_BACK: Final = {there: here for here, there in RENAMED.items()}
SHARED: Final = frozenset(("id", "source", "type", "subject", "time", "traceparent"))
OF_CLOUDEVENTS: Final = frozenset(("specversion", "datacontenttype", "dataschema"))


class CloudEvent(Struct, frozen=True):
    """A CloudEvent: its attributes in order, its data as JSON (None: it has none), and how many
    extension attributes of the event it can't carry."""

    attributes: dict[str, Any]
    data: bytes | Raw | None
    dropped: int = 0


class _Data(Struct):
    data: Raw = Raw()


DATA: Final = msgspec.json.Decoder(_Data)


def wrap_ahp(
    event: Event, copy: bytes, level: str, trace: TraceContext | None = None
) -> CloudEvent:
    """The CloudEvent of an AHP event in a trace, whose copy at `level` is its data."""
    attributes = {
        "specversion": SPECVERSION,
        "id": event.id,
        "source": event.source,
        "type": PREFIXES["ahp"] + event.type,
        "time": event.time,
        "datacontenttype": JSON,
        "ahpharness": event.emitter,
        "hookbuscapture": level,
    }
    if event.session is not None and level != "none":
        attributes["ahpsession"] = event.session
    if trace is not None:
        attributes |= trace.members(level)
    return CloudEvent(attributes, copy)


def wrap_aep(event: Mapping[str, Any], raw: bytes) -> CloudEvent:
    """The CloudEvent of a valid AEP event; `raw` is the event as JSON."""
    attributes = {
        "specversion": SPECVERSION,
        "id": event["id"],
        "source": event["source"],
        "type": PREFIXES["aep"] + event["type"],
    }
    for name in ("subject", "time"):
        if name in event:
            attributes[name] = event[name]
    if "data" in event:
        attributes["datacontenttype"] = JSON
    for here, there in RENAMED.items():
        if here in event:
            attributes[there] = event[here]
    extensions = event.keys() - RENAMED.keys() - SHARED - {"data"}
    taken = extensions & (OF_CLOUDEVENTS | NAMED_BACK.keys())
    kept = (extensions - taken) | {"traceparent"}
    attributes |= {name: value for name, value in event.items() if name in kept}
    data = DATA.decode(raw).data if "data" in event else None
    return CloudEvent(attributes, data, len(taken))


def structured(cloud: CloudEvent) -> bytes:
    """The CloudEvent as one JSON object; the data's bytes go in untouched."""
    return as_object(cloud.attributes, cloud.data)


def binary(cloud: CloudEvent) -> tuple[Headers, bytes | None]:
    """The headers and the value of a Kafka record that holds the CloudEvent."""
    headers = [
        ("content-type" if name == "datacontenttype" else f"ce_{name}", _text(value).encode())
        for name, value in cloud.attributes.items()
    ]
    return tuple(headers), None if cloud.data is None else bytes(cloud.data)


def as_object(members: Mapping[str, Any], data: bytes | Raw | None) -> bytes:
    """The members as a JSON object, and `data` as it is."""
    head = encode(members)
    return head if data is None else b'%s,"data":%s}' % (head[:-1], bytes(data))


def _text(value: Any) -> str:
    """An attribute in its canonical text form (CloudEvents 1.0.2, type system)."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
