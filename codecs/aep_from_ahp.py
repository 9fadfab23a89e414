"""An AHP event said in AEP: `hookbus.codecs.bridge` has the table and the names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hookbus.codecs.aep import VERSION
from hookbus.codecs.aep_from_elicitation import Elicitations
from hookbus.codecs.bridge import Said, Shown, Unsaid, prompt_of, texts
from hookbus.codecs.elicitation import Bodies
from hookbus.codecs.elicitation_event import ASKED, TOLD

_KINDS: Final = frozenset(("permission", "input", "auth", "review", "other"))
"""The kinds of `attention.requested`, but for `form`, which `user.attention` has no fields for."""
_ENDED: Final = {"completed": "normal", "error": "error"}
_RUNS: Final = {
    "completed": "run.finished",
    "failed": "run.failed",
    "max_iterations": "run.failed",
    "cancelled": "run.cancelled",
}

Say = Callable[[Shown], Said | Unsaid]


class ToAep:
    """Says AHP events in AEP. `bodies` judges what elicitations hold."""

    def __init__(self, bodies: Bodies) -> None:
        elicitations = Elicitations(bodies)
        self._say: dict[str, Say] = {
            "session.start": _session_start,
            "session.end": _session_end,
            "turn.start": _turn_start,
            "turn.end": _turn_end,
            "tool.before": _tool_before,
            "tool.after": _tool_after,
            "user.attention": _attention,
            ASKED: elicitations.request,
            TOLD: elicitations.result,
        }

    def say(
        self, event: Mapping[str, Any], shown: Shown, offset: int
    ) -> tuple[dict[str, Any], ...] | Unsaid:
        """The AEP event, or two of them for an answer that was accepted. Their envelope is that of
        the valid AHP event, because AEP keeps it at every level; what they say is what the copy in
        `shown` has, and nothing at `none`. `offset` is that of the event's record."""
        say = self._say.get(event["type"])
        if say is None:
            return Unsaid("no_counterpart")
        if "session" not in event:
            return Unsaid("no_session")
        parent = event.get("parentEventId")
        if event["type"] == TOLD and parent is None:
            return Unsaid("no_request")
        said = say(shown)
        if isinstance(said, Unsaid):
            return said
        silent = shown.level == "none"
        subject = parent if event["type"] == TOLD else None if silent else said.subject
        turn = event.get("turn")
        made = {
            "aep": VERSION,
            "id": event["id"],
            "type": said.type,
            "subject": subject,
            "time": event["time"],
            "source": event["source"],
            "agent": event["harness"]["name"],
            "session": event["session"]["id"],
            "run": turn["id"] if turn else None,
            "seq": 2 * offset,
            "cause": parent,
            "capture": shown.level,
            "ahptype": event["type"],
            "ahpversion": event["harness"]["version"],
            **said.extensions,
            "data": None if silent else said.data,
        }
        first = {name: value for name, value in made.items() if value is not None}
        return (first,) if said.type != "attention.answered" else (first, _resolved(first))


def _resolved(answered: Mapping[str, Any]) -> dict[str, Any]:
    """What ends a request that was answered; an answer alone doesn't (AEP-0002 §7.1)."""
    ours = {
        "id": f"{answered['id']}.resolved",
        "type": "attention.resolved",
        "seq": answered["seq"] + 1,
        "cause": answered["id"],
    }
    made = {name: ours.get(name, value) for name, value in answered.items()}
    if "data" in made:
        made["data"] = {"resolution": "answered"}
    return made


def _session_start(shown: Shown) -> Said:
    event = shown.tree
    session = event.get("session", {})
    data: dict[str, Any] = {"client": {name: event["harness"][name] for name in _CLIENT}}
    if "model" in session:
        data["gen_ai.request.model"] = session["model"]
    if shown.content and "cwd" in session:
        data["cwd"] = session["cwd"]
    return Said("session.started", data, {"ahptrigger": event["trigger"]})


def _session_end(shown: Shown) -> Said:
    event = shown.tree
    reason = _ENDED.get(event["outcome"])
    data = {} if reason is None else {"reason": reason}
    return Said("session.ended", data, {"ahpoutcome": event["outcome"]})


def _turn_start(shown: Shown) -> Said:
    event = shown.tree
    data = {"trigger": "user"} if event["trigger"] == "user" else {}
    if shown.content and (prompt := _messages(event["items"], "user")):
        data["prompt"] = prompt
    return Said("run.started", data, {"ahptrigger": event["trigger"]})


def _turn_end(shown: Shown) -> Said:
    event = shown.tree
    outcome = event["outcome"]
    data: dict[str, Any] = {}
    if outcome == "completed":
        data |= _usage(event.get("usage", {}))
        if shown.content and (summary := _messages(event["items"], "assistant")):
            data["summary"] = summary
    elif outcome != "cancelled":
        data["reason"] = outcome
        if "error" in event:
            data["error"] = _error(shown)
    return Said(_RUNS[outcome], data, {"ahpoutcome": outcome})


def _tool_before(shown: Shown) -> Said:
    data = _tool(shown)
    given = shown.tree["tool"]["input"]
    if shown.content and isinstance(given, dict):
        data["args" if shown.level == "full" else "args_redacted"] = given
    return Said("tool.requested", data, {}, shown.tree["tool"]["name"])


def _tool_after(shown: Shown) -> Said:
    event = shown.tree
    outcome = event["outcome"]
    data = _tool(shown)
    if outcome == "denied":
        kind = "tool.denied"
        data["by"] = "policy"  # AHP knows no other reason for a denial
    else:
        kind = "tool.completed" if outcome == "ok" else "tool.failed"
        if "durationMs" in event:
            data["duration_ms"] = int(event["durationMs"])
        if outcome == "ok":
            data["status"] = outcome
            if shown.content and (result := _messages(event["items"])):
                data["result" if shown.level == "full" else "result_redacted"] = result
        else:
            data["error"] = _error(shown) if "error" in event else {"type": outcome}
    return Said(kind, data, {"ahpoutcome": outcome}, event["tool"]["name"])


def _attention(shown: Shown) -> Said:
    attention = shown.tree["attention"]
    kind = attention["kind"]
    known = kind if kind in _KINDS else "other"
    prompt = ""
    if shown.content:
        prompt = texts(attention["message"]) or texts(attention["title"])
    data = {"kind": known, "prompt": prompt or prompt_of(shown.tree["harness"]["name"], known)}
    return Said("attention.requested", data, {} if kind == known else {"ahpkind": kind})


_CLIENT: Final = ("name", "version")


def _tool(shown: Shown) -> dict[str, Any]:
    event = shown.tree
    return {"tool": {"name": event["tool"]["name"], "call_id": event["call"]["id"]}}


def _error(shown: Shown) -> dict[str, Any]:
    error = shown.tree["error"]
    told = {"type": error["class"]}
    if shown.content:
        told["message"] = error["message"]
    return told


def _messages(messages: list[Mapping[str, Any]], role: str | None = None) -> str:
    """The texts of the messages of a role, or of all of them."""
    return texts(
        [part for each in messages if role in (None, each["role"]) for part in each["parts"]]
    )


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for here, there in (("inputTokens", "input_tokens"), ("outputTokens", "output_tokens")):
        if here in usage:
            told[f"gen_ai.usage.{there}"] = int(usage[here])
    if "cost" in usage:
        cost = usage["cost"]
        told["cost"] = {"currency": cost["currency"], "total": cost["amount"]}
    return told
