"""Reads AHP portable registration documents.

A document is decoded strictly, its shape is judged as the official validator (PyPI
`agenthooksprotocol` 0.10.1) does, except that a trailing newline is refused after a name, and then
by the rules that no schema states. All that is wrong is told at once, each with its place, and
neither a finding nor a note ever quotes a value: any may be a secret that is misplaced.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from hookbus.codecs.compiled import Compiled
from hookbus.codecs.formats import is_uri
from hookbus.codecs.strict import Limits, parse
from hookbus.codecs.verdict import Refusal
from hookbus.schemas.loader import Schema, load_registration, reference, target

Mode = Literal["observe", "intercept"]
Choice = Literal["body", "metadata", "omit"]

EVERYTHING = "*"
"""The selector of every event; others are an event type, or a family such as `tool.*`."""

_TELLING = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


class Finding(Struct, frozen=True):
    """Something to be said of a document: `path` is a JSON Pointer (RFC 6901) into it."""

    path: str
    text: str


class HeaderSource(Struct, frozen=True, rename="camel"):
    """Where the value of a header is: exactly one of the two."""

    value_env: str | None = None
    value_ref: str | None = None


class Http(Struct, frozen=True, tag_field="type", tag="http"):
    url: str
    headers: dict[str, str | HeaderSource] = {}


class Stdio(Struct, frozen=True, tag_field="type", tag="stdio"):
    """A process of the harness's machine. How it is started is nothing to us."""


class Bearer(Struct, frozen=True, tag_field="type", tag="bearer", rename="camel"):
    """A reference to a token: exactly one of the two."""

    token_env: str | None = None
    token_ref: str | None = None


class OAuth(Struct, frozen=True, tag_field="type", tag="oauth"):
    """An OAuth client."""


class Subscription(Struct, frozen=True, rename="camel"):
    """`events` are selectors; `content` is a selection (`hookbus.policies.selection`)."""

    events: list[str]
    mode: Mode
    content: dict[str, Choice]
    include_native: bool = False
    filters: dict[str, Any] | None = None
    upload: dict[str, Any] | None = None
    scope: Literal["managed", "project", "user"] = "user"


class Backend(Struct, frozen=True):
    """One backend, at `path`. What is faulty of it is absent. `subscriptions` are None if it names
    none, and go by their number in the document otherwise."""

    path: str
    id: str | None
    transport: Http | Stdio | None
    authentication: Bearer | OAuth | None
    subscriptions: dict[int, Subscription] | None


class Reading(Struct, frozen=True):
    """What a document says. With `problems` it is to be refused, and `backends` are what could be
    read of it; `unknown` are members that AHP doesn't know, which are ignored."""

    backends: tuple[Backend, ...]
    problems: tuple[Finding, ...]
    unknown: tuple[Finding, ...] = ()


class Registrations:
    """Reads documents. Construction reads the schemas; each is compiled when it is first needed,
    which takes tens of milliseconds."""

    def __init__(self) -> None:
        self._schemas = load_registration()
        self._names = _names(self._schemas)
        self._compiled = Compiled(self._schemas, {"uri": is_uri})

    def read(self, raw: bytes) -> Reading:
        """Never raises for any bytes."""
        tree = parse(raw, Limits(), self._names)
        if isinstance(tree, Refusal):
            return Reading((), (Finding(tree.path or "", f"is refused as {tree.code}"),))
        document = _Document(self._schemas, self._compiled)
        backends = tuple(document.backends(tree))
        unknown = tuple(_unknown(self._schemas, reference("registration"), tree, ""))
        return Reading(backends, tuple(document.problems), unknown)


def selects(selector: str, event_type: str) -> bool:
    """Whether a selector means events of this type; `tool.*` means `tool.permission.request`
    too."""
    if selector.endswith(EVERYTHING):
        return event_type.startswith(selector.removesuffix(EVERYTHING))
    return selector == event_type


class _Document:
    """Goes through a document piece by piece, so that one fault doesn't hide the next. The pieces
    are faultless exactly if the whole document is."""

    def __init__(self, schemas: Schema, compiled: Compiled) -> None:
        self.problems: list[Finding] = []
        self._compiled = compiled
        self._deliverable: dict[Mode, list[str]] = {
            "observe": schemas["definitions"]["observed"]["then"]["enum"],
            "intercept": schemas["definitions"]["intercepted"]["then"]["enum"],
        }

    def backends(self, tree: Any) -> Iterator[Backend]:
        self._accepts("registrationItself", tree, "")
        hooks = tree.get("hooks") if isinstance(tree, dict) else None
        listed = hooks if isinstance(hooks, list) else []
        ids = Counter(hook["id"] for hook in listed if _id_of(hook) is not None)
        for number, hook in enumerate(listed):
            at = f"/hooks/{number}"
            self._accepts("backendItself", hook, at)
            if ids[_id_of(hook)] > 1:
                self._problem(f"{at}/id", "another backend has this id too")
            if isinstance(hook, dict):
                yield self._backend(hook, at)

    def _backend(self, hook: dict[str, Any], at: str) -> Backend:
        transport = authentication = subscriptions = None
        if "transport" in hook:
            transport = self._transport(hook["transport"], f"{at}/transport")
        if "authentication" in hook:
            there = f"{at}/authentication"
            if self._accepts("authentication", hook["authentication"], there):
                authentication = msgspec.convert(hook["authentication"], Bearer | OAuth)
        if isinstance(hook.get("subscriptions"), list):
            subscriptions = dict(self._subscriptions(hook["subscriptions"], f"{at}/subscriptions"))
        return Backend(at, _id_of(hook), transport, authentication, subscriptions)

    def _transport(self, transport: Any, at: str) -> Http | Stdio | None:
        headers = transport.get("headers") if isinstance(transport, dict) else None
        if isinstance(headers, dict) and transport.get("type") == "http":
            good = {
                name: value
                for name, value in headers.items()
                if self._accepts("headerValue", value, f"{at}/headers", name)
            }
            transport = {**transport, "headers": good}
        if not self._accepts("transport", transport, at):
            return None
        read: Http | Stdio = msgspec.convert(transport, Http | Stdio)
        return read

    def _subscriptions(self, listed: list[Any], at: str) -> Iterator[tuple[int, Subscription]]:
        for number, given in enumerate(listed):
            there = f"{at}/{number}"
            if not self._accepts("subscription", given, there):
                continue
            subscription = msgspec.convert(given, Subscription)
            deliverable = self._deliverable[subscription.mode]
            for index, selector in enumerate(subscription.events):
                if not any(selects(selector, kind) for kind in deliverable):
                    text = f"selects no event that AHP lets a backend {subscription.mode}"
                    self._problem(f"{there}/events/{index}", text)
            yield number, subscription

    def _accepts(self, definition: str, value: Any, at: str, member: str | None = None) -> bool:
        """Whether the schema accepts the value at `at`, or in its `member`; notes why not."""
        fault = self._compiled.check(definition, value)
        if fault is not None:
            there = at if member is None else _entered(at, member)
            self._problem(f"{there}{fault.path or ''}", f"is not valid ({fault.rule})")
        return fault is None

    def _problem(self, at: str, text: str) -> None:
        self.problems.append(Finding(at, text))


def _id_of(hook: Any) -> str | None:
    identity = hook.get("id") if isinstance(hook, dict) else None
    return identity if isinstance(identity, str) else None


def _entered(at: str, name: str) -> str:
    """The place of a member that the schema doesn't name: only a name that looks like one is
    shown."""
    return f"{at}/{name}" if _TELLING.fullmatch(name) else at


def _unknown(schemas: Schema, schema: Any, value: Any, at: str) -> Iterator[Finding]:
    """Members that no branch of the schema names."""
    branches = list(_branches(schemas, schema))
    if isinstance(value, list):
        items = [branch["items"] for branch in branches if "items" in branch]
        for number, item in enumerate(value):
            yield from _unknown(schemas, {"allOf": items}, item, f"{at}/{number}")
    if not isinstance(value, dict):
        return
    named = [branch["properties"] for branch in branches if "properties" in branch]
    others = [b["additionalProperties"] for b in branches if "additionalProperties" in b]
    for name, member in value.items():
        within = [properties[name] for properties in named if name in properties]
        if within:
            yield from _unknown(schemas, {"allOf": within}, member, f"{at}/{name}")
        elif others:
            yield from _unknown(schemas, {"allOf": others}, member, _entered(at, name))
        elif named:
            yield Finding(_entered(at, name), "unknown to AHP, and ignored")


def _branches(schemas: Schema, schema: Any) -> Iterator[Schema]:
    if isinstance(schema, bool):
        return
    schema = target(schemas, schema)
    yield schema
    for branch in schema.get("allOf", ()):
        yield from _branches(schemas, branch)
    for keyword in ("then", "else"):
        yield from _branches(schemas, schema.get(keyword, True))


def _names(schemas: Schema) -> frozenset[str]:
    """The member names that the path of a repeated key may show."""
    named: set[str] = set()
    for definition in schemas["definitions"].values():
        for branch in _branches(schemas, definition):
            named.update(branch.get("properties", ()))
    return frozenset(named)
