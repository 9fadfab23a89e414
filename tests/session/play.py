"""An agent session played by the official SDK's client, as an application would use it.

Ids and times are those of the script, so that every session says the same, byte for byte. The
backend at the other end takes part: whether it denies the agent's write to production decides
what the agent reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agenthooksprotocol import Hooks, Permission, capability, content, event, subscription
from agenthooksprotocol.event import EventType

from tests.session import script
from tests.session.script import JSON, SESSION, TURN, body, message

SOURCE: Final = "https://agents.harborline.example/workstations/ws-114"
_BEGINNING: Final = datetime(2026, 3, 12, 9, 14, 2, tzinfo=UTC)
_STEP: Final = timedelta(milliseconds=1370)

_INTERCEPTED: Final[tuple[EventType, ...]] = (
    "tool.before",
    "tool.permission.request",
    "user.elicitation.request",
    "config.change.before",
)
_OBSERVED: Final[tuple[EventType, ...]] = (
    "session.start",
    "session.end",
    "turn.start",
    "turn.end",
    "model.request.before",
    "model.response.after",
    "tool.after",
    "tool.permission.resolved",
    "user.elicitation.result",
    "user.message.inbound",
    "config.change.after",
    "file.changed",
)


async def play(url: str, *, source: str = SOURCE) -> None:
    """The whole session, sent to the hook backend at `url`. Raises if a delivery failed."""
    async with Hooks(
        _registration(url),
        source=source,
        harness=event.Harness(name=script.HARNESS_NAME, version=script.HARNESS_VERSION),
        capabilities=_CAPABILITIES,
    ) as hooks:
        await _Session(hooks).run()


def _registration(url: str) -> dict[str, Any]:
    return {
        "protocolVersion": "draft",
        "hooks": [
            {
                "id": "example.harborline.hookbus",
                "transport": {"type": "http", "url": url},
                "subscriptions": [
                    subscription.Intercept(
                        events=list(_INTERCEPTED),
                        timeout=timedelta(seconds=10),
                        failure_policy=subscription.FailurePolicy.FAIL_CLOSED,
                        content=content.body(),
                    ),
                    subscription.Observe(events=list(_OBSERVED), content=content.body()),
                ],
            }
        ],
    }


_CAPABILITIES: Final = capability.HostCapabilities(
    tool_before=capability.ToolBeforeCapabilities(
        intercept=capability.ToolBeforeIntercept(allow=True, deny=True, ask=True)
    ),
    tool_permission_request=capability.ToolPermissionRequestCapabilities(
        intercept=capability.ToolPermissionRequestIntercept(allow=True, deny=True)
    ),
    user_elicitation_request=capability.UserElicitationRequestCapabilities(
        intercept=capability.UserElicitationRequestIntercept(
            deny=True, elicitation=capability.Elicitation.FORM
        )
    ),
    config_change_before=capability.ConfigChangeBeforeCapabilities(
        intercept=capability.ConfigChangeBeforeIntercept(deny=True)
    ),
    session_start=capability.SessionStartCapabilities(observe=True),
    session_end=capability.SessionEndCapabilities(observe=True),
    turn_start=capability.TurnStartCapabilities(observe=True),
    turn_end=capability.TurnEndCapabilities(observe=True),
    model_request_before=capability.ModelRequestBeforeCapabilities(observe=True),
    model_response_after=capability.ModelResponseAfterCapabilities(observe=True),
    tool_after=capability.ToolAfterCapabilities(observe=True),
    tool_permission_resolved=capability.ToolPermissionResolvedCapabilities(observe=True),
    user_elicitation_result=capability.UserElicitationResultCapabilities(observe=True),
    user_message_inbound=capability.UserMessageInboundCapabilities(observe=True),
    config_change_after=capability.ConfigChangeAfterCapabilities(observe=True),
    file_changed=capability.FileChangedCapabilities(observe=True),
)


class _Session:
    """Sends the events of the script one after another."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._count = 0

    async def run(self) -> None:
        await self._begin()
        await self._think()
        await self._use_tools()
        await self._try_production()
        await self._ask_the_person()
        await self._change_settings()
        await self._mend()
        await self._finish()

    async def _emit(self, name: EventType, payload: Mapping[str, Any]) -> tuple[str, Permission]:
        """Send one event; returns its id and what the backend decided."""
        self._count += 1
        identity = f"evt-{self._count:04}"
        time = (_BEGINNING + self._count * _STEP).isoformat(timespec="milliseconds")
        result = await self._hooks.dispatch(
            name,
            {"session": SESSION, **payload, "time": time.replace("+00:00", "Z")},
            event_id=identity,
        )
        if result.diagnostics:
            raise RuntimeError(f"{name} was not delivered: {result.diagnostics}")
        return identity, result.permission

    async def _begin(self) -> None:
        await self._emit(
            "session.start",
            {
                "trigger": "startup",
                "permissionMode": "ask",
                "session": {
                    **SESSION,
                    "cwd": script.FOLDER,
                    "workspaceRoots": [script.FOLDER],
                    "model": script.MODEL["id"],
                    "agent": {"id": "main", "type": "coding"},
                },
                "items": [message("sys-1", "system", "You mend software with care; be terse.")],
            },
        )
        await self._emit(
            "user.message.inbound",
            {
                "message": {
                    "channel": "slack",
                    "sender": script.PERSON,
                    "messages": [message("msg-1", "user", script.WISH)],
                }
            },
        )
        await self._emit(
            "turn.start",
            {
                "turn": TURN,
                "trigger": "user",
                "items": [message("msg-1", "user", script.WISH)],
            },
        )

    async def _think(self) -> None:
        call = {"turn": TURN, "model": script.MODEL, "attempt": {"id": "try-1", "number": 1}}
        request, _ = await self._emit(
            "model.request.before",
            {
                **call,
                "params": {"temperature": 0.2, "max_tokens": 8192, "user": script.PERSON},
                "items": [message("msg-1", "user", script.WISH)],
            },
        )
        await self._emit(
            "model.response.after",
            {
                **call,
                "parentEventId": request,
                "execution": {"status": "executed"},
                "items": [message("msg-2", "assistant", script.PLAN)],
                "finishReason": "tool_use",
                "latencyMs": 1840.5,
                "usage": {
                    "kind": "amount",
                    "scope": "attempt",
                    "completeness": "complete",
                    "provenance": "provider",
                    "inputTokens": 1893,
                    "outputTokens": 74,
                    "cost": {"amount": 0.0068, "currency": "USD", "basis": "estimated"},
                },
            },
        )

    async def _use_tools(self) -> None:
        await self._call(script.READ, "out-1", script.SOURCE_TEXT, {"durationMs": 12.4})
        await self._call(script.TEST, "out-2", script.TEST_OUTPUT, {"durationMs": 2210})
        await self._call(script.SEARCH, "out-3", script.TICKET_TEXT, {"durationMs": 385.1})

    async def _call(self, call: JSON, output: str, words: str, more: JSON) -> None:
        before, _ = await self._emit("tool.before", {"turn": TURN, **call})
        await self._emit(
            "tool.after",
            {
                "turn": TURN,
                **call,
                "parentEventId": before,
                "outcome": "ok",
                "execution": {"status": "executed"},
                "items": [message(output, "tool", words)],
                **more,
            },
        )

    async def _try_production(self) -> None:
        call = {"turn": TURN, **script.DELETE}
        before, _ = await self._emit("tool.before", call)
        request, permission = await self._emit(
            "tool.permission.request",
            {
                **call,
                "parentEventId": before,
                "suggestions": [{"rule": "allow", "prefix": "psql 'postgres://claims_rw:"}],
                "sandboxBypass": True,
            },
        )
        by_hook = permission is Permission.DENY  # otherwise Maya says no at the prompt
        await self._emit(
            "tool.permission.resolved",
            {
                **call,
                "parentEventId": request,
                "decision": "deny",
                "decidedBy": "hook" if by_hook else "user",
            },
        )
        await self._emit(
            "tool.after",
            {
                **call,
                "parentEventId": before,
                "outcome": "denied",
                "execution": {"status": "skipped", "reason": "policy", "detail": script.DENIAL},
                "items": [message("out-4", "tool", f"Denied: {script.DENIAL}")],
            },
        )

    async def _ask_the_person(self) -> None:
        asked = {"server": script.SERVER, "mode": "form"}
        request, _ = await self._emit(
            "user.elicitation.request",
            {"turn": TURN, "elicitation": {**asked, "request": body("form-1", script.FORM)}},
        )
        await self._emit(
            "user.elicitation.result",
            {
                "turn": TURN,
                "parentEventId": request,
                "elicitation": {
                    **asked,
                    "action": script.ANSWERS["action"],
                    "result": body("form-1-answer", script.ANSWERS),
                },
            },
        )

    async def _change_settings(self) -> None:
        change = {
            "source": "file",
            "scope": "project",
            "settings": ["permissions.shell", "model.max_tokens"],
            "summary": "Signed off by Maya: shell commands in the sandbox run without asking",
            "path": f"{script.FOLDER}/.atlas/settings.json",
        }
        before, _ = await self._emit("config.change.before", {"change": change})
        await self._emit(
            "config.change.after",
            {
                "parentEventId": before,
                "change": {
                    **change,
                    "mcpServers": [
                        {"name": script.SERVER, "url": "https://tickets.harborline.example/mcp"}
                    ],
                },
            },
        )

    async def _mend(self) -> None:
        path = f"{script.FOLDER}/jobs/refund.py"
        await self._call(
            script.EDIT,
            "out-5",
            "The file has been updated.",
            {"durationMs": 8.9, "fileChanges": [{"path": path, "change": "modified"}]},
        )
        await self._emit(
            "file.changed",
            {
                "turn": TURN,
                "changes": [
                    {
                        "path": f"{script.FOLDER}/docs/refund-keys.md",
                        "operation": "create",
                        "agentCaused": True,
                        "after": script.text("file-1", "Refunds carry an idempotency key.\n"),
                    }
                ],
            },
        )

    async def _finish(self) -> None:
        await self._emit(
            "turn.end",
            {
                "turn": TURN,
                "outcome": "completed",
                "continuationCount": 0,
                "lastAssistantItem": {"id": "msg-3"},
                "items": [message("msg-3", "assistant", script.SUMMARY)],
                "usage": {
                    "kind": "total",
                    "scope": "turn",
                    "completeness": "complete",
                    "provenance": "provider",
                    "inputTokens": 20412,
                    "outputTokens": 1377,
                },
            },
        )
        await self._emit(
            "session.end",
            {
                "outcome": "completed",
                "reason": "Maya closed the window",
                "counters": {"turns": 1, "tools": 5},
            },
        )
