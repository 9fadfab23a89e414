"""The event in a CloudEvent that comes in: the reverse of `hookbus.codecs.cloudevents`.

What is no legal extension attribute of AEP, or would be mistaken for an attribute of its envelope,
is dropped and counted. Attributes around an AHP event have to agree with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from hookbus.codecs.cloudevents import (
    DATA,
    JSON,
    NAMED_BACK,
    OF_CLOUDEVENTS,
    PREFIXES,
    RENAMED,
    SHARED,
    SPECVERSION,
    as_object,
)
from hookbus.codecs.event import Event, Protocol
from hookbus.codecs.headers import Headers
from hookbus.codecs.verdict import Refusal

_INTEGERS: Final = ("aepsequence", "aepepoch")
_AEP_ORDER: Final = (
    "aep", "id", "type", "subject", "time", "source", "agent", "session", "run", "step", "seq",
    "epoch", "cause", "severity", "capture",
)  # fmt: skip
_NAME: Final = re.compile(r"[a-z0-9]{1,20}")
_MEDIA_TYPE: Final = re.compile(
    r"(?:application|text)/(?:[^;\s/]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.DOTALL
)
_BYTES: Final = tuple(prefix.encode() for prefix in PREFIXES.values())


class Carried(Struct, frozen=True):
    """The event that a CloudEvent carries, not judged yet, with the number of attributes that were
    dropped."""

    protocol: Protocol
    tree: dict[str, Any]
    raw: bytes
    attributes: dict[str, Any]
    dropped: int = 0


def carries(tree: Mapping[str, Any]) -> Protocol | None:
    """The protocol of the event that an object carries as a structured CloudEvent, if it is one.
    No type of AHP or AEP begins with these prefixes, so that no event is mistaken for one."""
    return _protocol(tree.get("type")) if "specversion" in tree else None


def unwrap(tree: Mapping[str, Any], raw: bytes) -> Carried | Refusal:
    """The event in a structured CloudEvent, for which `carries` tells a protocol. `tree` is what
    `hookbus.codecs.strict.parse` read in `raw`."""
    attributes = {
        name: value for name, value in tree.items() if name != "data" and value is not None
    }
    if "data" not in tree:
        return _carried(attributes, None, None)
    return _carried(attributes, tree["data"], bytes(DATA.decode(raw).data))


def binary_attributes(headers: Headers) -> dict[str, Any] | None:
    """The attributes in the headers of a record whose value is the data of a CloudEvent with an AHP
    or AEP event; None for all other records, those of routes included, whose value is the event
    itself. Of a header that comes twice the last counts."""
    if not any(name == "ce_type" and value.startswith(_BYTES) for name, value in headers):
        return None
    attributes: dict[str, Any] = {}
    for name, value in headers:
        text = value.decode("utf-8", "replace")
        if name.lower() == "content-type":
            if text.startswith("application/cloudevents"):
                return None
            attributes["datacontenttype"] = text
        elif name.startswith("ce_"):
            attributes[name[3:]] = text
    for name in _INTEGERS:
        text = attributes.get(name, "")
        if re.fullmatch(r"\d{1,19}", text, re.ASCII):
            attributes[name] = int(text)
    return attributes if _protocol(attributes.get("type")) is not None else None


def unwrap_binary(attributes: dict[str, Any], data: Any, raw: bytes | None) -> Carried | Refusal:
    """The event in a binary CloudEvent with these attributes (of `binary_attributes`); `data` is
    what was read in `raw`, which is None where the record has no value."""
    return _carried(attributes, data, raw)


def moved(refusal: Refusal, protocol: Protocol) -> Refusal:
    """The refusal of an event, as one of the CloudEvent that carries it."""
    path = refusal.path
    if path is None:
        return refusal
    if protocol == "ahp":
        return Refusal(refusal.code, f"/data{path}", refusal.rule)
    name, slash, rest = path[1:].partition("/")
    name = RENAMED.get(name, name)
    return Refusal(refusal.code, f"/{name}{slash}{rest}" if path else "", refusal.rule)


def disagreement(carried: Carried, event: Event) -> Refusal | None:
    """What the attributes around an AHP event say differently from the event."""
    said = carried.attributes
    expected = {
        "id": event.id,
        "source": event.source,
        "type": PREFIXES["ahp"] + event.type,
        "ahpsession": event.session,
        "ahpharness": event.emitter,
    }
    for name in ("id", "source"):
        if name not in said:
            return Refusal("schema", "", "required")
    for name, value in expected.items():
        if name in said and said[name] != value:
            return Refusal("schema", f"/{name}", "const")
    if "time" in said and not _same_time(said["time"], event.time):
        return Refusal("schema", "/time", "const")
    return None


def _carried(attributes: dict[str, Any], data: Any, raw: bytes | None) -> Carried | Refusal:
    if attributes.get("specversion") != SPECVERSION:
        return Refusal("schema", "/specversion", "const")
    if "data_base64" in attributes:
        return Refusal("schema", "/data_base64", "not")
    media = attributes.get("datacontenttype", JSON)
    if not isinstance(media, str) or _MEDIA_TYPE.fullmatch(media) is None:
        return Refusal("schema", "/datacontenttype", "pattern")
    if _protocol(attributes["type"]) == "aep":
        return _carried_aep(attributes, data, raw)
    if raw is None:
        return Refusal("schema", "", "required")
    if not isinstance(data, dict):
        return Refusal("schema", "/data", "type")
    return Carried("ahp", data, raw, attributes)


def _carried_aep(attributes: Mapping[str, Any], data: Any, raw: bytes | None) -> Carried:
    found: dict[str, Any] = {}
    dropped = 0
    for name, value in attributes.items():
        if name in NAMED_BACK:
            found[NAMED_BACK[name]] = value
        elif name in SHARED:
            found[name] = value
        elif name == "dataschema" or (name not in OF_CLOUDEVENTS and not _legal(name, value)):
            dropped += 1
        elif name not in OF_CLOUDEVENTS:
            found[name] = value
    found["type"] = found["type"].removeprefix(PREFIXES["aep"])
    tree = {name: found.pop(name) for name in _AEP_ORDER if name in found} | found
    whole = as_object(tree, raw)
    if raw is not None:
        tree["data"] = data
    return Carried("aep", tree, whole, dict(attributes), dropped)


def _legal(name: str, value: Any) -> bool:
    """Whether this may be an extension attribute of an AEP event (AEP-0001 §5.4)."""
    core = name in RENAMED or name == "data"
    return not core and isinstance(value, str | int) and _NAME.fullmatch(name) is not None


def _protocol(kind: Any) -> Protocol | None:
    if isinstance(kind, str):
        for protocol, prefix in PREFIXES.items():
            if kind.startswith(prefix):
                return protocol
    return None


def _same_time(one: Any, other: str) -> bool:
    """Whether two date-times are the same instant: others may spell one anew on the way."""
    if one == other:
        return True
    try:
        return datetime.fromisoformat(one) == datetime.fromisoformat(other)
    except (TypeError, ValueError):  # such as a leap second, which datetime doesn't know
        return False
