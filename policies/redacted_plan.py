"""Compiles the capture annotations of a schema into the plan of a redacted copy.

As `hookbus.policies.plan`, an allow-list; only that texts, people, paths and opaque JSON go through
the redaction pipeline instead of going, and parts keep their text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from hookbus.policies.fates import Resolve, Schema, members_of, resolved
from hookbus.policies.parts import Cut, cut_part
from hookbus.policies.plan import GONE, Step, array_step, keep, object_step, object_with_gaps_step
from hookbus.policies.redaction.contract import Redacts


def compile_redaction(schema: Schema, resolve: Resolve, redactor: Redacts) -> Step:
    """The step that rewrites a whole event of this schema to `redacted`."""
    return _Compiler(resolve, redactor).step(schema)


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
    if part["selection"] != "body" or "body" in part:
        return cut_part(part, Cut("metadata"))
    made = {**cut_part(part, Cut("omit")), "selection": "body"}
    if "text" in part:
        made["text"] = redactor.text(part["text"])
    if "gap" in part:
        made["gap"] = {name: redactor.text(said) for name, said in part["gap"].items()}
        if "size" in part:
            made["size"] = part["size"]
    return made


class _Compiler:
    def __init__(self, resolve: Resolve, redactor: Redacts) -> None:
        self._resolve = resolve
        self._redactor = redactor

    def step(self, schema: Schema) -> Step:
        schema = resolved(schema, self._resolve)
        match schema.get("x-capture"):
            case "part":
                return lambda value, at, gaps: redacted_part(value, self._redactor)
            case "opaque":
                return lambda value, at, gaps: self._redactor.value(value)
            case "structural" | "path" if "properties" in schema or "allOf" in schema:
                return self._object(schema)
            case "structural" | "path" if "items" in schema:
                return self._array(schema)
            case "structural" | "token":
                return keep
            case "text" | "identity" | "path" if schema.get("format") == "uri":
                return self._url
            case "text" | "identity" | "path":
                return self._text(frozenset(schema.get("x-capture-keep", ())))
            case unknown:
                raise ValueError(f"unknown capture class {unknown!r}")

    def _object(self, schema: Schema) -> Step:
        members = members_of(schema, self._resolve)
        steps = {name: self.step(member.schema) for name, member in members.items()}
        return object_with_gaps_step(steps) if schema.get("x-gaps") else object_step(steps)

    def _array(self, schema: Schema) -> Step:
        items = resolved(schema["items"], self._resolve)
        if items.get("x-capture") == "part":
            return lambda value, at, gaps: redacted_parts(value, self._redactor)
        if items.get("x-capture") in ("text", "path") and items.get("type") == "string":
            return self._strings(unique=bool(schema.get("uniqueItems")))
        return array_step(self.step(items))

    def _text(self, kept: frozenset[str]) -> Step:
        def step(value: Any, at: str, gaps: list[str]) -> Any:
            if not isinstance(value, str):
                raise TypeError("not a text")
            return value if value in kept else self._redactor.text(value)

        return step

    def _strings(self, *, unique: bool) -> Step:
        """A list of paths or arguments. Where they must be unique, what became equal is there once:
        the home directories of two people."""

        def step(value: Any, at: str, gaps: list[str]) -> Any:
            made = self._redactor.value(value)
            return list(dict.fromkeys(made)) if unique else made

        return step

    def _url(self, value: Any, at: str, gaps: list[str]) -> Any:
        """Its origin, or nothing: a path of capitals and digits may be a credential that looks like
        none."""
        shown = origin(value)
        return shown if shown is not None and self._redactor.text(shown) == shown else GONE


def redacted_parts(parts: Sequence[Mapping[str, Any]], redactor: Redacts) -> list[dict[str, Any]]:
    """The parts of one message. Texts that stand beside each other are read as one, so that what is
    split over them is found."""
    made: list[dict[str, Any]] = []
    for is_text, run in groupby(parts, key=_has_text):
        group = list(run)
        if not is_text or len(group) == 1:
            made += [redacted_part(part, redactor) for part in group]
            continue
        texts = redactor.texts([part["text"] for part in group])
        for part, text in zip(group, texts, strict=True):
            shell = {**cut_part(part, Cut("omit")), "selection": "body"}
            made.append({**shell, "text": text})
    return made


def _has_text(part: Mapping[str, Any]) -> bool:
    return "text" in part
