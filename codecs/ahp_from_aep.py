"""An AEP form and its answer said in AHP: `hookbus.codecs.bridge` has the table and the names.

The MCP params of a request are rebuilt from its fields: a label is the title, choices are `oneOf`
(several: `items.anyOf`) with the choice's id as `const`. What a field_spec has no place for, such
as descriptions, formats, lengths and integers, is lost on the way through AEP. A select that takes
other answers than its choices is a string field, because choices of MCP are closed; its description
lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from hookbus.codecs.bridge import CONTENT, Unsaid
from hookbus.codecs.elicitation_event import ASKED, TOLD
from hookbus.codecs.strict import encode

_UNKNOWN_VERSION: Final = "unknown"
_SPEC: Final[Mapping[str, type | tuple[type, ...]]] = {
    "id": str,
    "type": str,
    "label": str,
    "required": bool,
    "multi": bool,
    "other": bool,
    "min": (int, float),
    "max": (int, float),
}
"""What a field_spec may say, but for its choices; anything else in it is no structure."""


class SaidInAhp(Struct, frozen=True):
    """A valid AHP event with every text that its level may have, and what the extension
    `dev.hookbus.form` of a copy at `metadata` says of it."""

    tree: dict[str, Any]
    form: dict[str, Any] | None


def to_ahp(event: Mapping[str, Any], level: str) -> SaidInAhp | Unsaid:
    """The AHP event. `event` is an AEP copy at this capture level."""
    data = event.get("data", {})
    origin = event.get("ahptype")
    match event["type"]:
        case "attention.requested" if origin == ASKED or data.get("kind") == "form":
            return _request(event, data, level)
        case "attention.answered" if origin == TOLD or "values" in data.get("answer", {}):
            return _result(event, data.get("answer", {}), "accept", level)
        case "attention.resolved" if origin == TOLD:
            action = event.get("ahpaction")
            if action in ("decline", "cancel"):
                return _result(event, {}, action, level)
    return Unsaid("no_counterpart")


def _request(event: Mapping[str, Any], data: Mapping[str, Any], level: str) -> SaidInAhp:
    made = _envelope(event, ASKED, event.get("cause"))
    specs = list(_specs(data["fields"], level)) if "fields" in data else None
    if level in CONTENT:
        body = _params(data, specs)
        if body is not None:
            made["elicitation"]["request"] = _part(event, body)
    return SaidInAhp(made, None if specs is None else {"fields": specs})


def _result(
    event: Mapping[str, Any], answer: Mapping[str, Any], action: str, level: str
) -> SaidInAhp | Unsaid:
    request = event.get("subject", event.get("cause"))
    if request is None:
        return Unsaid("no_request")
    made = _envelope(event, TOLD, request)
    made["elicitation"]["action"] = action
    values = answer.get("values")
    content = {key: value for key, value in (values or {}).items() if _is_mcp(value)}
    bare = action != "accept" or made["elicitation"]["mode"] == "url"
    if level in CONTENT and (bare or values is not None):
        body = {"action": action} if bare else {"action": action, "content": content}
        made["elicitation"]["result"] = _part(event, body)
    return SaidInAhp(made, None if values is None else {"values": content})


def _envelope(event: Mapping[str, Any], kind: str, parent: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": event["id"],
        "source": event["source"],
        "type": kind,
        "time": event["time"],
        "harness": {
            "name": event["agent"],
            "version": _text(event, "ahpversion") or _UNKNOWN_VERSION,
        },
        "session": {"id": event["session"]},
    }
    if "run" in event:
        made["turn"] = {"id": event["run"]}
    if parent is not None:
        made["parentEventId"] = parent
    made["elicitation"] = {
        "server": _text(event, "ahpserver") or event["agent"],
        "mode": "url" if event.get("ahpmode") == "url" else "form",
    }
    return made


def _text(event: Mapping[str, Any], name: str) -> str | None:
    value = event.get(name)
    return value if isinstance(value, str) else None


def _part(event: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"{event['id']}.body",
        "kind": "text",
        "mediaType": "text/plain",
        "selection": "body",
        "text": encode(body).decode(),
    }


def _params(data: Mapping[str, Any], specs: list[dict[str, Any]] | None) -> dict[str, Any] | None:
    """The MCP params of a request, None where it doesn't hold them."""
    context = data.get("context", {})
    if specs is not None:
        return _form_params(data["prompt"], specs)
    url, identity = context.get("url"), context.get("elicitationId")
    if isinstance(url, str) and isinstance(identity, str):
        return {"mode": "url", "message": data["prompt"], "url": url, "elicitationId": identity}
    return None


def _form_params(message: str, specs: list[dict[str, Any]]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {spec["id"]: _property(spec) for spec in specs},
    }
    required = [spec["id"] for spec in specs if spec.get("required")]
    if required:
        schema["required"] = required
    return {"mode": "form", "message": message, "requestedSchema": schema}


def _property(spec: Mapping[str, Any]) -> dict[str, Any]:
    titled = {"title": spec["label"]} if spec["label"] != spec["id"] else {}
    if spec["type"] == "number":
        bounds = {"minimum": spec.get("min"), "maximum": spec.get("max")}
        known = {name: bound for name, bound in bounds.items() if bound is not None}
        return {"type": "number", **titled, **known}
    if spec["type"] != "select":
        return {"type": spec["type"], **titled}
    choices = [{"const": choice["id"], "title": choice["label"]} for choice in spec["choices"]]
    if spec.get("other"):
        listed = "; ".join(f"{choice['const']}: {choice['title']}" for choice in choices)
        return {"type": "string", **titled, "description": f"{listed}; or another answer"}
    if spec.get("multi"):
        return {"type": "array", **titled, "items": {"anyOf": choices}}
    return {"type": "string", **titled, "oneOf": choices}


def _specs(fields: Any, level: str) -> Iterator[dict[str, Any]]:
    """The fields as they may be said at this level: each id once, and below `redacted` every label
    is the id."""
    seen: set[str] = set()
    for field in fields:
        if field["id"] in seen:
            continue
        seen.add(field["id"])
        spec = {name: field[name] for name in _SPEC if isinstance(field.get(name), _SPEC[name])}
        if "choices" in field:
            spec["choices"] = [_labelled(choice, level) for choice in field["choices"]]
        yield _labelled(field, level, spec)


def _labelled(
    named: Mapping[str, Any], level: str, spec: dict[str, Any] | None = None
) -> dict[str, Any]:
    made = {"id": named["id"]} if spec is None else spec
    made["label"] = named["label"] if level in CONTENT else named["id"]
    return made


def _is_mcp(value: Any) -> bool:
    """Whether an MCP result may hold this answer."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, str | int | float)
