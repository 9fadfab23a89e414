"""AEP events of all 46 registered types, made from the schemas: with every declared field, and with
none that is not required.

In a maximal event each text says what it needs: `needs-redacted`, `needs-full`, or `starred` where
metadata says less than above. `starred` is also every key and text in the values of a form but the
ids of closed choices (`eu`, `us`).
"""

from __future__ import annotations

from typing import Any

from hookbus.schemas.loader import Schema, aep_types, load_aep, payload, target

SCHEMAS = load_aep()
TYPES = aep_types(SCHEMAS)
AGENT_SCOPED = tuple(kind for kind in TYPES if kind.startswith("agent."))
FOREIGN = (
    *("control.attention.respond", "control.cancel", "control.pause", "control.resume"),
    "attention.routed",
)
UNMAPPED = tuple(kind for kind in TYPES if "properties" not in payload(SCHEMAS, kind))

Tree = dict[str, Any]


def envelope(kind: str, capture: str | None = None, **more: Any) -> Tree:
    """The least event of a type, without data."""
    event: Tree = {
        "aep": "0.1",
        "id": f"id-{kind}",
        "type": kind,
        "time": "2026-08-24T08:51:14.5Z",
        "source": "aep://host/agent/demo/session/s1",
        "agent": "demo",
    }
    if not kind.startswith("agent."):
        event["session"] = "s1"
        if kind not in FOREIGN:
            event["seq"] = 3
    if capture is not None:
        event["capture"] = capture
    return {**event, **more}


def maximal(kind: str) -> Tree:
    """An event at `full` with every attribute of its scope and every declared field."""
    event = envelope(kind, "full", subject="the-subject", epoch=1, cause="c1", severity="notice")
    event |= {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "acmeregion": "eu", "acmecount": 3}
    if kind not in AGENT_SCOPED:
        event |= {"run": "r1", "step": "1"}
    return {**event, "data": _filled(payload(SCHEMAS, kind))}


def minimal(kind: str) -> Tree:
    """An event at the default level with nothing that is not required, and no data if that may
    be."""
    data = _filled(payload(SCHEMAS, kind), least=True)
    return envelope(kind) | ({"data": data} if data else {})


def _filled(schema: Schema, *, least: bool = False) -> Any:
    schema = target(SCHEMAS, schema)
    if "enum" in schema:
        return schema["enum"][-1]
    if schema.get("x-degrade") == "values":
        return {"starred": "starred", "count": 3, "flag": True, "zone": "eu", "zones": ["eu", "us"]}
    word = "starred" if "x-degrade" in schema else _WORDS[schema["x-capture"]]
    match schema["type"]:
        case "object" if "properties" in schema:
            names = schema.get("required", ()) if least else schema["properties"]
            return {name: _filled(schema["properties"][name], least=least) for name in names}
        case "object" | ["object", "string"]:
            return {word: [{"deep.er": word}, word, 1, None]}
        case "array":
            return [_filled(schema["items"], least=least) for _ in range(2)]
        case "string":
            return "2026-08-24T08:51:14Z" if "format" in schema else word
        case "boolean":
            return True
    return 7


_WORDS = {"metadata": "plain", "redacted": "needs-redacted", "full": "needs-full"}
