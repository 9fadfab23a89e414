"""Compiles the capture annotations of a schema into the plan of a redacted copy.

As `hookbus.policies.plan`, an allow-list; only that texts, people, paths and opaque JSON go through
the redaction pipeline instead of going, and parts keep their text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from operator import is_
from typing import Any, Final
from urllib.parse import urlsplit

from hookbus.policies.fates import Resolve, Schema, kept_texts, members_of, resolved
from hookbus.policies.parts import Cut, cut_part
from hookbus.policies.plan import GONE, REASON, Step, keep
from hookbus.policies.redaction.contract import Redacts

_METADATA: Final = Cut("metadata")
_OMIT: Final = Cut("omit")
_PLAIN: Final = ("id", "kind", "mediaType", "selection", "text")
_TEXT: Final = "text/plain"
"""What most parts are; only their text changes."""


def compile_redaction(schema: Schema, resolve: Resolve, redactor: Redacts) -> Step:
    """The step that rewrites a whole event of this schema to `redacted`, without its extensions.
    What it makes shares with the event what is the same, and is another object."""
    rewrite = _Compiler(resolve, redactor).object(resolved(schema, resolve), {"extensions"})

    def step(value: Any, at: str, gaps: list[str]) -> Any:
        made = rewrite(value, at, gaps)
        return dict(made) if made is value else made

    return step


def origin(url: str) -> str | None:
    """The origin of a URL with a host, without whoever is named before it; None for others."""
    try:
        parts = urlsplit(url)
        known = parts.scheme and parts.hostname and (parts.port is None or parts.port >= 0)
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/" if known else None


def redacted_part(part: Mapping[str, Any], redactor: Redacts) -> dict[str, Any]:
    """A part at the selection that it has, its text redacted. An attachment is no text: a reference
    to its body goes, and what describes it stays."""
    if tuple(part) == _PLAIN and part["selection"] == "body" and part["mediaType"] == _TEXT:
        text = redactor.text(part["text"])
        return dict(part, text=text)
    if part["selection"] != "body" or "body" in part:
        return cut_part(part, _METADATA)
    made = _described(part)
    if "text" in part:
        made["text"] = redactor.text(part["text"])
    if "gap" in part:
        made["gap"] = {name: redactor.text(said) for name, said in part["gap"].items()}
        if "size" in part:
            made["size"] = part["size"]
    return made


def part_with(part: Mapping[str, Any], text: str) -> dict[str, Any]:
    """What describes a part, and this text."""
    made = _described(part)
    made["text"] = text
    return made


def _described(part: Mapping[str, Any]) -> dict[str, Any]:
    made = cut_part(part, _OMIT)
    made["selection"] = "body"
    return made


def redacted_parts(parts: Sequence[Mapping[str, Any]], redactor: Redacts) -> list[dict[str, Any]]:
    """The parts of one message. Texts that stand beside each other are read as one, so that what is
    split over them is found."""
    if len(parts) == 1:
        return [redacted_part(parts[0], redactor)]
    made: list[dict[str, Any]] = []
    for is_text, run in groupby(parts, key=_has_text):
        group = list(run)
        if not is_text or len(group) == 1:
            made += [redacted_part(part, redactor) for part in group]
        else:
            texts = redactor.texts([part["text"] for part in group])
            made += map(part_with, group, texts)
    return made


def _has_text(part: Mapping[str, Any]) -> bool:
    return "text" in part


Leaf = Callable[[Any], Any]
"""`value -> what takes its place, or GONE`."""


class _Compiler:
    def __init__(self, resolve: Resolve, redactor: Redacts) -> None:
        self._resolve = resolve
        self._redactor = redactor

    def object(self, schema: Schema, without: Collection[str] = ()) -> Step:
        """The step of an object: of its members some stay, some are leaves, and some are rewritten
        by steps of their own."""
        leaves: dict[str, Leaf] = {}
        steps: dict[str, Step] = {}
        members = members_of(schema, self._resolve)
        known = frozenset(members).difference(without)
        for name, found in members.items():
            if name not in known:
                continue
            member = resolved(found.schema, self._resolve)
            if (leaf := self._leaf(member)) is not None:
                leaves[name] = leaf
            elif (step := self._step(member)) is not keep:
                steps[name] = step
        made = _object_step(known, tuple(leaves.items()), tuple(steps.items()))
        return _with_gaps_step(made) if schema.get("x-gaps") else made

    def _step(self, schema: Schema) -> Step:
        match schema.get("x-capture"):
            case "structural" | "path" if "properties" in schema or "allOf" in schema:
                return self.object(schema)
            case "structural" | "path" if "items" in schema:
                items = resolved(schema["items"], self._resolve)
                leaf = self._leaf(items)
                return _array_step(_step_of(leaf) if leaf is not None else self._step(items))
            case "structural" | "token":
                return keep
            case unknown:
                raise ValueError(f"unknown capture class {unknown!r}")

    def _leaf(self, schema: Schema) -> Leaf | None:
        """What becomes of a value that is redacted as a whole; None for any other."""
        redactor = self._redactor
        match schema.get("x-capture"):
            case "part":
                return lambda part: redacted_part(part, redactor)
            case "opaque":
                return redactor.value
            case "structural" | "path" if "properties" in schema or "allOf" in schema:
                return None
            case "structural" | "path" if "items" in schema:
                return self._list(schema)
            case "text" | "identity" | "path" if schema.get("format") == "uri":
                return self._url
            case "text" | "identity" | "path":
                return self._text(kept_texts(schema))
            case _:
                return None

    def _list(self, schema: Schema) -> Leaf | None:
        """A list of parts, paths or arguments. Where they must be unique, what became equal is
        there once: the home directories of two people."""
        redactor = self._redactor
        items = resolved(schema["items"], self._resolve)
        if items.get("x-capture") == "part":
            return lambda parts: redacted_parts(parts, redactor)
        if items.get("x-capture") not in ("text", "path") or items.get("type") != "string":
            return None
        if schema.get("uniqueItems"):
            return lambda texts: list(dict.fromkeys(redactor.value(texts)))
        return redactor.value

    def _text(self, kept: frozenset[str]) -> Leaf:
        redact = self._redactor.text

        def leaf(value: Any) -> Any:
            if not isinstance(value, str):
                raise TypeError("not a text")
            return value if value in kept else redact(value)

        return leaf

    def _url(self, value: Any) -> Any:
        """Its origin, or nothing: a path of capitals and digits may be a credential that looks like
        none."""
        shown = origin(value)
        return shown if shown is not None and self._redactor.text(shown) == shown else GONE


def _object_step(
    known: frozenset[str], leaves: tuple[tuple[str, Leaf], ...], steps: tuple[tuple[str, Step], ...]
) -> Step:
    """Members that aren't known go; an object in which nothing changes is shared."""
    if not leaves and not steps:
        return _filter_step(known)

    def step(value: Any, at: str, gaps: list[str]) -> Any:
        made = value
        if not known.issuperset(value):
            made = {name: member for name, member in value.items() if name in known}
        for name, leaf in leaves:
            if name in value:
                old = value[name]
                new = leaf(old)
                if new is not old:
                    if made is value:
                        made = value.copy()
                    if new is GONE:
                        gaps.append(f"{at}/{name}")
                        del made[name]
                    else:
                        made[name] = new
        for name, rewrite in steps:
            if name in value:
                old = value[name]
                new = rewrite(old, f"{at}/{name}", gaps)
                if new is not old:
                    if made is value:
                        made = value.copy()
                    made[name] = new
        return made

    return step


def _filter_step(known: frozenset[str]) -> Step:
    def step(value: Any, at: str, gaps: list[str]) -> Any:
        if known.issuperset(value):
            return value
        return {name: member for name, member in value.items() if name in known}

    return step


def _step_of(leaf: Leaf) -> Step:
    return lambda value, at, gaps: leaf(value)


def _array_step(item: Step) -> Step:
    if item is keep:
        return keep

    def step(value: Any, at: str, gaps: list[str]) -> Any:
        made = [item(member, f"{at}/{index}", gaps) for index, member in enumerate(value)]
        return value if all(map(is_, made, value)) else made

    return step


def _with_gaps_step(inner: Step) -> Step:
    """An object that tells of its withheld members itself, by name (AHP `mcp.connection`)."""

    def step(value: Any, at: str, gaps: list[str]) -> Any:
        own: list[str] = []
        made = inner(value, "", own)
        if own:
            withheld = [{"path": pointer[1:], "reason": REASON} for pointer in own]
            made["gaps"] = made.get("gaps", []) + withheld
        return made

    return step
