"""The two elicitation events of AHP said in AEP (AEP-0006): `hookbus.codecs.bridge` has the names.

A form's `fields` are those that `hookbus.codecs.form.field_specs` makes of its MCP params, and its
values are keyed by property key, so that they are the content of the MCP result again. Of a
nonconforming body the code is told; that of a request is in `data.context.body` at `full`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookbus.codecs.answers import is_number
from hookbus.codecs.bridge import Said, Shown, prompt_of
from hookbus.codecs.credentials import asks_credential
from hookbus.codecs.elicitation import Answer, Bodies, BodyFault, UrlRequest
from hookbus.codecs.form import Form, field_specs


class Elicitations:
    """Says elicitations in AEP."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies

    def request(self, shown: Shown) -> Said:
        """`attention.requested`. Without its body a request tells the fields that are known of it,
        and the prompt is synthesized."""
        elicitation = shown.tree["elicitation"]
        mode = elicitation["mode"]
        kind = "form" if mode == "form" else "other"
        agent = shown.tree["harness"]["name"]
        text = _body(shown, "request")
        judged = None if text is None else self._bodies.request(text, mode)
        data: dict[str, Any] = {"kind": kind, "prompt": ""}
        if isinstance(judged, (Form, UrlRequest)):
            data["prompt"] = judged.message
        if mode == "form":
            specs = shown.form.get("fields")
            if isinstance(judged, Form):
                specs = field_specs(judged, labels=True)
            if specs is not None:
                data["fields"] = specs
        if shown.level == "full" and isinstance(judged, UrlRequest):
            data["context"] = {"url": judged.url, "elicitationId": judged.id}
        if shown.level == "full" and isinstance(judged, BodyFault):
            data["context"] = {"body": text}
        if not data["prompt"]:
            data["prompt"] = _prompt(agent, kind, data.get("fields"))
        return Said("attention.requested", data, _extensions(shown))

    def result(self, shown: Shown) -> Said:
        """`attention.answered` for an answer that was accepted, else `attention.resolved`."""
        elicitation = shown.tree["elicitation"]
        extensions = {**_extensions(shown), "ahpaction": elicitation["action"]}
        if elicitation["action"] != "accept":
            return Said("attention.resolved", {"resolution": "dismissed"}, extensions)
        values = self._values(shown) if elicitation["mode"] == "form" else None
        answer = {} if values is None else {"values": values}
        return Said("attention.answered", {"answer": answer}, extensions)

    def _values(self, shown: Shown) -> Mapping[str, Any] | None:
        """The answers; those to no field of the form go at every level (AEP-0002 §5.3), and those
        to fields that ask for a credential below full."""
        text = _body(shown, "result")
        if text is None:
            return shown.form.get("values")
        judged = self._bodies.result(text, "form", "accept")
        if not isinstance(judged, Answer):
            return None
        content = judged.content or {}
        if "fields" in shown.form:
            known = {field["id"] for field in shown.form["fields"]}
            content = {key: value for key, value in content.items() if key in known}
        if shown.level == "full":
            return content
        return {key: value for key, value in content.items() if not _is_secret(key, value)}


def _is_secret(key: str, value: Any) -> bool:
    return asks_credential(key, None, number=is_number(value))


def _body(shown: Shown, member: str) -> str | None:
    if not shown.content:
        return None
    text: str | None = shown.tree["elicitation"].get(member, {}).get("text")
    return text


def _prompt(agent: str, kind: str, fields: list[Any] | None) -> str:
    return prompt_of(agent, kind, None if fields is None else len(fields))


def _extensions(shown: Shown) -> dict[str, Any]:
    elicitation = shown.tree["elicitation"]
    told = {"ahpserver": elicitation["server"], "ahpmode": elicitation["mode"]}
    body = shown.form.get("body")
    if body is not None and body != "conforming":
        told["ahpbody"] = body
    if "result" in shown.form:
        told["ahpresult"] = shown.form["result"]
    return told
