"""A maximal and a minimal event of every AHP type, and the messages that carry them.

Maximal events have every member that their type knows, and members that no schema names. Every
piece of content in them - texts, opaque JSON, paths, people, names of unknown members - holds the
word in CANARY; ids, enums and machine tokens don't. Each call builds new objects.
"""

from __future__ import annotations

from typing import Any

CANARY = "canary"

Event = dict[str, Any]

_MESSAGES = frozenset(
    {
        "session.start",
        "tool.after",
        "turn.start",
        "turn.finish.before",
        "turn.end",
        "model.request.before",
        "model.response.after",
        "context.compact.before",
        "context.compact.after",
    }
)
_CLOSED_TURN = ("turn.", "model.", "context.", "tool.permission.", "tool.progress", "tool.batch.")

INTERCEPTABLE = {
    "session.start": ["inject", "message"],
    "turn.start": ["deny", "modify", "inject", "flow", "message"],
    "turn.finish.before": ["modify", "flow", "message"],
    "model.request.before": ["deny", "modify", "inject", "return", "flow", "message"],
    "model.response.after": ["modify", "flow", "message"],
    "model.switch.before": ["deny", "flow", "message"],
    "tool.before": ["deny", "allow", "ask", "modify", "inject", "flow", "return", "message"],
    "tool.after": ["modify", "inject", "flow", "message"],
    "tool.permission.request": ["allow", "deny", "modify", "flow", "message"],
    "tool.batch.after": ["flow", "inject", "message"],
    "context.compact.before": ["deny", "modify", "return", "inject", "message"],
    "context.compact.after": ["inject", "modify", "message"],
    "task.change.before": ["deny", "message"],
    "workspace.change.before": ["deny", "modify", "message"],
    "config.change.before": ["deny", "message"],
    "user.elicitation.request": ["deny", "return", "message"],
    "user.elicitation.result": ["modify", "message"],
    "user.message.inbound": ["deny", "modify", "message"],
    "user.message.outbound": ["deny", "modify", "message"],
}
"""The types that hooks may intercept, each with its effects."""

_TARGETS = {
    "turn.start": "prompt",
    "turn.finish.before": "response",
    "model.request.before": "request",
    "model.response.after": "response",
    "tool.before": "input",
    "tool.after": "output",
    "tool.permission.request": "input",
    "context.compact.before": "instructions",
    "context.compact.after": "summary",
    "workspace.change.before": "workspace",
    "user.elicitation.result": "content",
    "user.message.inbound": "prompt",
    "user.message.outbound": "content",
}


def maximal() -> dict[str, Event]:
    """Type to event with everything that the type may hold at once."""
    return {kind: _envelope(kind) | payload for kind, payload in _full_payloads().items()}


def minimal() -> dict[str, Event]:
    """Type to event with only what its type requires."""
    return {kind: _bare_envelope(kind) | payload for kind, payload in _least_payloads().items()}


def observe(event: Event) -> Event:
    """The notification that carries an event."""
    params = {"protocolVersion": "draft", "event": event}
    return {"jsonrpc": "2.0", "method": "hooks/observe", "params": params}


def intercept(event: Event) -> Event:
    """A request that offers a hook everything that it may do to an event."""
    kind = event["type"]
    return {
        "jsonrpc": "2.0",
        "id": event["id"],
        "method": "hooks/intercept",
        "params": {
            "protocolVersion": "draft",
            "event": event,
            "capabilities": capabilities(kind),
            "extensions": {"com.example.trace": {"canary": "canary-wrapper"}},
            "state": {
                "permission": "none",
                "candidate": _candidate(kind),
                "flow": "none",
                "instructions": ["canary-instruction"],
                "injections": [
                    {
                        "type": "inject",
                        "target": "context",
                        "operation": "append",
                        "deliverAt": "now",
                        "value": [_message("message-injected", "user")],
                    }
                ],
            },
        },
    }


def capabilities(kind: str) -> Event:
    """All that a hook may do to an event of an interceptable type."""
    effects = INTERCEPTABLE[kind]
    offered: Event = {"effects": list(effects), "elicitation": {"form": {}, "url": {}}}
    if "modify" in effects:
        offered["modify"] = {_TARGETS[kind]: {"replace": True, "merge": False}}
    if "flow" in effects:
        both = kind in ("tool.after", "turn.finish.before")
        offered["flow"] = {
            "operations": ["stop", "continue"] if both else ["stop"],
            "remainingContinuations": 2,
            "continuationCount": 0,
            "maxContinuations": 2,
        }
    if "inject" in effects:
        offered["inject"] = {"context": {"append": True, "deliverAt": ["now", "next_turn"]}}
    return offered


def _candidate(kind: str) -> Event | None:
    match kind:
        case "model.request.before":
            value: Any = [_message("message-candidate", "assistant")]
        case "context.compact.before":
            value = [_text("part-candidate")]
        case "user.elicitation.request":
            value = {
                "action": "accept",
                "content": {"name": "canary-answer", "tags": ["a"], "n": 1},
            }
        case "tool.before":
            value = {"canary": "canary-result"}
        case _:
            return None
    return {"value": value, "provenance": {"hook": "canary-hook"}}


def _bare_envelope(kind: str) -> Event:
    return {
        "id": f"event-{kind}",
        "source": "urn:example:agent:1",
        "type": kind,
        "time": "2026-08-24T08:51:14Z",
        "harness": {"name": "demo-harness", "version": "1.0.0"},
    }


def _envelope(kind: str) -> Event:
    return _bare_envelope(kind) | {
        "time": "2026-08-24T08:51:14.123+02:00",
        "session": {
            "id": "session-1",
            "cwd": "/canary/cwd",
            "workspaceRoots": ["/canary/root", "/canary/other"],
            "model": "model-1",
            "agent": {"id": "agent-1", "type": "helper"},
            "counters": {
                "turns": 1,
                "modelRequests": 2,
                "toolCalls": 3,
                "inputTokens": 40,
                "outputTokens": 0,
                "canaryCounter": 7,
            },
            "synthesized": False,
            "canarySession": "canary-session",
        },
        "turn": {"id": "turn-1", "synthesized": True}
        | ({} if kind.startswith(_CLOSED_TURN) else {"canaryTurn": "canary-turn"}),
        "parentEventId": "event-0",
        "items": [_message("message-1", "user"), _message("message-2", "tool")]
        if kind in _MESSAGES
        else _parts("items"),
        "gaps": [{"path": "/native/log", "reason": "canary-gap", "canaryGap": "canary-gap"}],
        "native": {"canary": ["canary-native", 1.5, None]},
        "extensions": {"com.example.trace": {"canary": "canary-extension"}, "a.b": None},
        "synthesized": False,
        "canaryMember": {"id": "canary-unknown"},
    }


def _text(identity: str) -> Event:
    return {
        "id": identity,
        "kind": "text",
        "mediaType": "text/plain",
        "selection": "body",
        "category": "reasoning",
        "text": f"canary-text \u00e9\u4e16\U0001f600 {identity}",
        "synthesized": True,
    }


def _parts(prefix: str) -> list[Event]:
    """A part of each kind in each form."""
    gap = {"reason": "canary-gap", "path": "/canary/part"}
    seen = {"size": 12, "sha256": "0f" * 32}
    text = {"kind": "text", "mediaType": "text/plain"}
    image = {"kind": "attachment", "mediaType": "image/png", "category": "images"}
    return [
        _text(f"part-{prefix}-1"),
        {"id": f"part-{prefix}-2", **text, "selection": "body", "gap": gap, **seen},
        {"id": f"part-{prefix}-3", **text, "selection": "metadata", **seen},
        {"id": f"part-{prefix}-4", **text, "selection": "omit", "size": 0},
        {"id": f"part-{prefix}-5", **image, "selection": "body", "body": {"ref": "canary-ref"}},
        {"id": f"part-{prefix}-6", **image, "selection": "body", "gap": gap, **seen},
        {"id": f"part-{prefix}-7", **image, "selection": "metadata", **seen},
        {"id": f"part-{prefix}-8", **image, "selection": "omit"},
    ]


def _message(identity: str, role: str) -> Event:
    return {"id": identity, "role": role, "parts": _parts(identity), "synthesized": False}


def _least_message(role: str) -> Event:
    return {"id": "message-1", "role": role, "parts": []}


def _connections() -> list[Event]:
    gap = {"reason": "canary-gap"}
    return [
        {"transport": "http", "url": "https://canary.example/mcp"},
        {"transport": "sse", "gaps": [{"path": "url", **gap}]},
        {
            "transport": "stdio",
            "command": "/canary/server",
            "args": ["--canary", ""],
            "cwd": "/canary",
            "gaps": [{"path": "env", **gap}],
        },
        {"transport": "_pipe", "addressForm": "canary-form", "address": "canary-address"},
    ]


def _tool(connection: int = 0) -> Event:
    return {
        "name": "deploy",
        "kind": "mcp",
        "input": {"canary": {"deep": ["canary-input", {"id": "canary-id"}]}},
        "origin": "mcp",
        "mcp": {
            "server": {"id": "server-1", "name": "deployer"},
            "toolName": "deploy",
            "provenance": "runtime",
            "connection": _connections()[connection],
        },
    }


def _call(connection: int = 0) -> Event:
    return {
        "call": {"id": "call-1", "synthesized": False},
        "tool": _tool(connection),
        "path": "native",
        "batch": {"id": "batch-1", "callIds": ["call-1", "call-2"], "synthesized": False},
    }


def _least_call() -> Event:
    tool = {"name": "shell", "input": {}, "origin": "native"}
    return {"call": {"id": "call-1"}, "tool": tool, "path": "native"}


def _usage(kind: str, scope: str) -> Event:
    return {
        "kind": kind,
        "scope": scope,
        "completeness": "partial",
        "provenance": "provider",
        "inputTokens": 1,
        "outputTokens": 2,
        "cacheReadTokens": 3,
        "cacheWriteTokens": 4,
        "cost": {"amount": 0.25, "currency": "EUR", "basis": "billed"},
    }


def _error() -> Event:
    return {
        "message": "canary-error",
        "class": "io",
        "code": "E1",
        "status": 500,
        "native": {"canary": "canary-trace"},
    }


def _manifest() -> Event:
    kinds = [*_least_payloads()]
    events = [
        {"event": kind, "modes": ["observe", "intercept"], "capabilities": capabilities(kind)}
        if kind in INTERCEPTABLE
        else {"event": kind, "modes": ["observe"]}
        for kind in kinds
    ]
    return {
        "events": events,
        "gaps": [{"path": "tool.after", "reason": "canary-gap"}],
        "transports": ["http", "stdio", "in_process"],
        "authentication": ["bearer", "oauth"],
        "toolPaths": ["native", "mcp"],
        "contentCategories": ["reasoning"],
        "limits": {
            "maxUploadBytes": 1,
            "maxContinuations": 2,
            "minTimeoutMs": 3,
            "maxTimeoutMs": 4,
        },
        "managedPolicy": {"scopes": ["user", "project", "managed"], "disableable": False},
        "correlationIdentityFields": ["source", "id"],
        "canaryManifest": "canary-manifest",
    }


def _least_manifest() -> Event:
    lists = (
        "events",
        "gaps",
        "transports",
        "authentication",
        "toolPaths",
        "contentCategories",
        "correlationIdentityFields",
    )
    policy = {"scopes": [], "disableable": True}
    return {name: [] for name in lists} | {"limits": {}, "managedPolicy": policy}


def _full_payloads() -> dict[str, Event]:
    model = {"id": "model-1", "provider": "provider-1"}
    attempt = {"id": "attempt-1", "number": 1, "synthesized": False}
    executed = {"status": "executed"}
    skipped = {"status": "skipped", "reason": "policy", "detail": "canary-detail"}
    supplied = {"status": "skipped", "reason": "supplied_result"}
    request = {"model": model, "attempt": attempt}
    finish = {
        "outcome": "failed",
        "lastAssistantItem": {"id": "message-2", "synthesized": False},
        "continuationCount": 1,
        "usage": _usage("total", "turn"),
    }
    task = {
        "id": "task-1",
        "operation": "update",
        "change": {"canary": "canary-change"},
        "prior": {"canary": "canary-prior"},
        "description": "canary-description",
        "synthesized": False,
    }
    workspace = {
        "kind": "switch",
        "change": {"cwd": "/canary/new", "workspaceRoots": ["/canary/a", "/canary/b"]},
        "prior": {"cwd": "/canary/old", "workspaceRoots": ["/canary/c"]},
        "reason": "canary-reason",
    }
    config = {
        "source": "user",
        "scope": "project",
        "settings": ["editor.tabs", "model"],
        "summary": "canary-summary",
        "path": "/canary/config",
    }
    elicitation = {"server": "deployer", "mode": "form"}
    return {
        "session.start": {
            "trigger": "fork",
            "resumedFrom": {"id": "session-0", "synthesized": False},
            "permissionMode": "ask",
            "manifest": _manifest(),
        },
        "session.end": {
            "outcome": "error",
            "reason": "canary-reason",
            "counters": {"turns": 3, "canaryCounter": 4},
        },
        "turn.start": {"trigger": "hook", "expandedFrom": "canary-expanded"},
        "turn.finish.before": finish,
        "turn.end": finish | {"error": _error()},
        "turn.progress": {
            "item": {"id": "message-3", "synthesized": False},
            "delta": _message("message-3", "assistant"),
            "final": False,
        },
        "model.request.before": request | {"params": {"canary": "canary-params"}},
        "model.response.after": request
        | {
            "execution": executed,
            "usage": _usage("amount", "attempt"),
            "finishReason": "stop",
            "latencyMs": 12.5,
        },
        "model.error": request
        | {
            "execution": executed,
            "error": _error(),
            "usage": _usage("amount", "attempt"),
            "latencyMs": 12,
            "recovery": "canary-recovery",
        },
        "model.switch.before": {
            "current": model,
            "proposed": {"id": "model-2", "provider": "provider-1"},
            "reason": "canary-reason",
            "pricing": {
                "currency": "USD",
                "inputPerMillionTokens": 1.5,
                "outputPerMillionTokens": 3,
            },
        },
        "model.switch.after": {
            "previous": model,
            "current": {"id": "model-2", "provider": "provider-1"},
            "reason": "canary-reason",
        },
        "tool.before": _call(2),
        "tool.after": _call()
        | {
            "outcome": "error",
            "execution": executed,
            "error": _error(),
            "durationMs": 3.25,
            "fileChanges": [
                {
                    "path": "/canary/file",
                    "change": "moved",
                    "previousPath": "/canary/before",
                    "before": _text("part-before"),
                    "after": _text("part-after"),
                },
                {"path": "/canary/new", "change": "created", "after": _text("part-created")},
                {"path": "/canary/gone", "change": "deleted", "before": _text("part-deleted")},
            ],
        },
        "tool.permission.request": _call(1)
        | {"suggestions": [{"canary": "canary-rule"}, {}], "sandboxBypass": False},
        "tool.permission.resolved": _call(3) | {"decision": "allow", "decidedBy": "user"},
        "tool.progress": _call()
        | {"partialOutput": _message("message-4", "tool"), "backgrounded": True},
        "tool.batch.after": {
            "batch": {"id": "batch-1", "synthesized": False},
            "calls": [
                _call() | {"outcome": "denied", "execution": skipped},
                _call(2) | {"outcome": "ok", "execution": supplied},
                _call(3) | {"outcome": "ok", "execution": executed},
            ],
        },
        "context.compact.before": {
            "trigger": "manual",
            "instructions": _parts("instructions")[:4],
            "tokenCounts": {"before": 1000},
        },
        "context.compact.after": {
            "summary": _parts("summary")[:4],
            "removed": [{"id": "message-1"}, {"id": "message-2"}],
            "tokenCounts": {"before": 1000, "after": 10},
            "execution": supplied,
        },
        "task.change.before": {"task": task},
        "task.change.after": {"task": dict(task)},
        "workspace.change.before": {"workspace": workspace},
        "workspace.change.after": {"workspace": dict(workspace)},
        "file.changed": {
            "changes": [
                {
                    "path": "/canary/file",
                    "operation": "update",
                    "agentCaused": True,
                    "before": _text("part-before"),
                    "after": _parts("after")[4],
                }
            ]
        },
        "config.change.before": {"change": config},
        "config.change.after": {"change": config | {"mcpServers": [{"canary": "canary-server"}]}},
        "user.attention": {
            "attention": {
                "kind": "question",
                "message": _parts("message")[:4],
                "title": [_text("part-title")],
            }
        },
        "user.elicitation.request": {"elicitation": elicitation | {"request": _text("part-form")}},
        "user.elicitation.result": {
            "elicitation": elicitation | {"action": "accept", "result": _text("part-answer")}
        },
        "user.message.inbound": {
            "message": {
                "channel": "chat",
                "sender": "canary-person",
                "messages": [_message("message-5", "user")],
            }
        },
        "user.message.outbound": {
            "message": {"channel": "chat", "messages": [_message("message-5", "assistant")]}
        },
        "hook.failure": {
            "failure": {
                "backendId": "com.example.policy",
                "reason": "canary-reason",
                "policy": "fail-closed",
            }
        },
    }


def _least_payloads() -> dict[str, Event]:
    session = {"session": {"id": "session-1"}}
    turn = {"turn": {"id": "turn-1"}}
    items: Event = {"items": []}
    model = {"id": "model-1", "provider": "provider-1"}
    request = {"model": model, "attempt": {"id": "attempt-1", "number": 1}}
    executed = {"execution": {"status": "executed"}}
    finish = turn | items | {"outcome": "completed", "continuationCount": 0}
    error = {"error": {"message": "failed", "class": "io"}}
    task = {"task": {"id": "task-1", "operation": "create", "change": {}}}
    workspace = {"workspace": {"kind": "roots", "change": {"workspaceRoots": []}}}
    change = {"change": {"source": "user", "scope": "user", "settings": [], "summary": "changed"}}
    elicitation = {"server": "deployer", "mode": "url"}
    return {
        "session.start": session
        | items
        | {"trigger": "startup", "permissionMode": "ask", "manifest": _least_manifest()},
        "session.end": session | {"outcome": "completed", "reason": "done"},
        "turn.start": turn | items | {"trigger": "user"},
        "turn.finish.before": finish,
        "turn.end": dict(finish),
        "turn.progress": turn
        | {"item": {"id": "message-1"}, "delta": _least_message("assistant"), "final": True},
        "model.request.before": request | items | {"params": {}},
        "model.response.after": request | items | executed | {"finishReason": "stop"},
        "model.error": request | executed | error,
        "model.switch.before": {"current": model, "proposed": model, "reason": "cheaper"},
        "model.switch.after": {"previous": model, "current": model, "reason": "cheaper"},
        "tool.before": _least_call(),
        "tool.after": _least_call() | items | executed | {"outcome": "ok"},
        "tool.permission.request": _least_call() | {"suggestions": [], "sandboxBypass": True},
        "tool.permission.resolved": _least_call() | {"decision": "deny", "decidedBy": "policy"},
        "tool.progress": _least_call()
        | {"partialOutput": _least_message("tool"), "backgrounded": False},
        "tool.batch.after": {
            "batch": {"id": "batch-1"},
            "calls": [_least_call() | executed | {"outcome": "ok"}],
        },
        "context.compact.before": items | {"trigger": "auto"},
        "context.compact.after": executed | {"summary": [], "removed": []},
        "task.change.before": task,
        "task.change.after": dict(task),
        "workspace.change.before": workspace,
        "workspace.change.after": dict(workspace),
        "file.changed": {
            "changes": [{"path": "/file", "operation": "create", "agentCaused": False}]
        },
        "config.change.before": change,
        "config.change.after": dict(change),
        "user.attention": {"attention": {"kind": "done", "message": [], "title": []}},
        "user.elicitation.request": {"elicitation": elicitation},
        "user.elicitation.result": {"elicitation": elicitation | {"action": "cancel"}},
        "user.message.inbound": {"message": {"channel": "chat", "sender": "sam", "messages": []}},
        "user.message.outbound": {"message": {"channel": "chat", "messages": []}},
        "hook.failure": {
            "parentEventId": "event-0",
            "failure": {
                "backendId": "com.example.policy",
                "reason": "timeout",
                "policy": "fail-open",
            },
        },
    }
