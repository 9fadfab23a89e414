"""The verdict on an elicitation body: the MCP params or result that an AHP event carries as text.

It equals that of the official schema (`mcp-elicitation#request` and `#result` of the PyPI package
`agenthooksprotocol` 0.10.1), then holds the body against its event (AHP, ELICITATION). Stricter
than official are only:

- the parser, which is that of events (`hookbus.codecs.strict`), and the caps below;
- the URL, which must not end in a newline (`hookbus.codecs.formats`).

Whether answers satisfy the form that was asked is a second question: `hookbus.codecs.answers`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from hookbus.codecs.compiled import Compiled
from hookbus.codecs.form import Form, read_form
from hookbus.codecs.form_types import are_form_params, is_result, known_form
from hookbus.codecs.formats import is_uri
from hookbus.codecs.strict import Limits, parse
from hookbus.codecs.verdict import Refusal
from hookbus.schemas.loader import Schema

MAX_BYTES: Final = 256 * 1024
"""The longest body, in UTF-8 bytes."""
MAX_PROPERTIES: Final = 1_000
"""The most fields of a form, and the most answers."""
MAX_CHOICES: Final = 10_000
"""The most choices of all fields of a form together, and the most chosen items in all answers."""

Mode = Literal["form", "url"]
Action = Literal["accept", "decline", "cancel"]

_LIMITS: Final = Limits(max_bytes=MAX_BYTES)


class BodyFault(Struct, frozen=True, omit_defaults=True):
    """Why a body is nonconforming. Never holds a value.

    - `body_json`: no strict JSON, or too large; `rule` is the code of the strict parser.
    - `body_schema`: not the MCP shape, or above a cap on counts; `rule` is the schema keyword.
    - `body_mismatch`: another mode or action than the event's.
    - `body_content`: content that came with decline, cancel or url mode.
    - `body_answer`: an answer that the form doesn't allow; `rule` is the schema keyword.

    `path` is a JSON Pointer (RFC 6901) within the body. It ends at the last member that the MCP
    vocabulary names, or at a property key of the form that was asked.
    """

    code: Literal["body_json", "body_schema", "body_mismatch", "body_answer", "body_content"]
    path: str | None = None
    rule: str | None = None


class UrlRequest(Struct, frozen=True):
    """A request to open a URL. The URL is a URI of any scheme, with or without userinfo: valid
    doesn't mean safe to open. `id` is its `elicitationId`."""

    message: str
    url: str
    id: str


class Answer(Struct, frozen=True):
    """A result. `content` maps property keys to strings, numbers, booleans and lists of strings;
    None if the body has none, and always None but for an accepted form."""

    action: Action
    content: dict[str, Any] | None = None


class Bodies:
    """Judges bodies against `schemas` (of `hookbus.schemas.loader.load_elicitation`).

    Construction compiles them, which takes some milliseconds, and raises RuntimeError if a bad URL
    would pass. Nothing that comes in a body is ever compiled.
    """

    def __init__(self, schemas: Schema) -> None:
        self._compiled = Compiled(schemas, {"uri": is_uri})
        self._test_itself()

    def request(self, text: str, mode: Mode) -> Form | UrlRequest | BodyFault:
        """The request that `text` asks, in an event of this mode."""
        body = _read(text)
        if isinstance(body, BodyFault):
            return body
        form = known_form(body)
        fault = None if form is not None else self._request_fault(body)
        if fault is not None:
            return fault
        if body.get("mode", "form") != mode:
            return BodyFault("body_mismatch", "/mode")
        if mode == "url":
            return UrlRequest(body["message"], body["url"], body["elicitationId"])
        return form or read_form(body)

    def _request_fault(self, body: Any) -> BodyFault | None:
        fault = _crowded_form(body)
        return fault if fault is not None or are_form_params(body) else self._check("request", body)

    def result(self, text: str, mode: Mode, action: Action) -> Answer | BodyFault:
        """The answer that `text` gives, in an event of this mode and action."""
        body = _read(text)
        if isinstance(body, BodyFault):
            return body
        fault = _crowded_answer(body)
        if fault is None and not is_result(body):
            fault = self._check("result", body)
        if fault is not None:
            return fault
        if body["action"] != action:
            return BodyFault("body_mismatch", "/action")
        if "content" in body and (mode == "url" or action != "accept"):
            return BodyFault("body_content", "/content")
        return Answer(action, body.get("content"))

    def _check(self, name: str, body: Any) -> BodyFault | None:
        fault = self._compiled.check(name, body)
        return None if fault is None else BodyFault("body_schema", fault.path, fault.rule)

    def _test_itself(self) -> None:
        """Makes both validators and the types on the way, so that no body waits for them."""
        url = {"mode": "url", "message": "", "url": "urn:x", "elicitationId": ""}
        form = {"message": "", "requestedSchema": {"type": "object", "properties": {}}}
        sound = (
            self._check("request", url) is None
            and self._check("request", {**url, "url": "a url"}) is not None
            and self._check("request", form) is None
            and are_form_params(form)
            and known_form(form) is not None
            and self._check("result", {"action": "cancel"}) is None
            and is_result({"action": "cancel"})
        )
        if not sound:
            raise RuntimeError("the validator fails its self-test: formats are not checked")


def _read(text: str) -> Any | BodyFault:
    if len(text) > MAX_BYTES:
        return BodyFault("body_json", rule="too_large")
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return BodyFault("body_json", rule="invalid_utf8")
    tree = parse(raw, _LIMITS)
    return BodyFault("body_json", rule=tree.code) if isinstance(tree, Refusal) else tree


def _crowded_form(body: Any) -> BodyFault | None:
    """The fault of a body, whatever its shape, that has too many fields or choices."""
    at = "/requestedSchema/properties"
    properties = _member(_member(body, "requestedSchema"), "properties")
    if not isinstance(properties, dict):
        return None
    if len(properties) > MAX_PROPERTIES:
        return BodyFault("body_schema", at, "maxProperties")
    if sum(map(_count_choices, properties.values())) > MAX_CHOICES:
        return BodyFault("body_schema", at, "maxItems")
    return None


def _count_choices(field: Any) -> int:
    count = 0
    for holder in (field, _member(field, "items")):
        if isinstance(holder, dict):
            for keyword in ("enum", "oneOf", "anyOf"):
                if isinstance(listed := holder.get(keyword), list):
                    count += len(listed)
    return count


def _crowded_answer(body: Any) -> BodyFault | None:
    content = _member(body, "content")
    if not isinstance(content, dict):
        return None
    if len(content) > MAX_PROPERTIES:
        return BodyFault("body_schema", "/content", "maxProperties")
    if sum(len(value) for value in content.values() if isinstance(value, list)) > MAX_CHOICES:
        return BodyFault("body_schema", "/content", "maxItems")
    return None


def _member(node: Any, name: str) -> Any:
    return node.get(name) if isinstance(node, dict) else None
