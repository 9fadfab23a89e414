"""Walks JSON trees for the redactor: credential-named keys, lists, and JSON inside of texts."""

from __future__ import annotations

import itertools
import re
from operator import is_
from typing import Any, Final

from hookbus.codecs.strict import Limits, parse
from hookbus.codecs.verdict import Refusal
from hookbus.policies.redaction.contract import Redacts
from hookbus.policies.redaction.names import names_credential, rule_of
from hookbus.policies.redaction.spans import SECRET

_LIMITS: Final = Limits(max_depth=64)
_NAME_KEYS: Final = ("name", "key", "header", "field", "variable", "Name", "Key")
_VALUE_KEYS: Final = frozenset(("value", "Value", "values", "default"))
_NAME: Final = re.compile(r"[\w.-]{1,128}")
_FLAG: Final = re.compile(r"--?[A-Za-z][\w-]{1,64}")
_OPENING: Final = ("{", "[")
_CLOSING: Final = ("}", "]")


def redacted(tree: Any, reader: Redacts) -> Any:
    """The tree, redacted, in the same shape; it shares with the tree what stays as it was."""
    if isinstance(tree, str):
        return reader.text(tree)
    if tree is None or tree is True or tree is False:
        return tree
    if isinstance(tree, dict):
        return _object(tree, reader)
    if isinstance(tree, list):
        return _array(tree, reader)
    if isinstance(tree, int | float):
        return SECRET if reader.number_is_secret(tree) else tree
    return tree


def _object(tree: dict[str, Any], reader: Redacts) -> dict[str, Any]:
    """The properties of a JSON Schema are named like what they ask for, and are no credentials."""
    named = _names_a_credential(tree)
    made = tree
    for key, value in tree.items():
        if value is None:
            continue
        rule = rule_of(key)
        if key == "properties" and isinstance(value, dict) and _are_schemas(value):
            new: Any = {name: redacted(schema, reader) for name, schema in value.items()}
        elif (rule is not None and rule.takes(value)) or (named and key in _VALUE_KEYS):
            new = SECRET
        elif isinstance(value, str):
            new = reader.text(value)
        else:
            new = redacted(value, reader)
        if new is not value:
            if made is tree:
                made = tree.copy()
            made[key] = new
    return made


def _names_a_credential(tree: dict[str, Any]) -> bool:
    """Whether it is a header or variable as an object: `{"name": "Authorization", "value": …}`."""
    if _VALUE_KEYS.isdisjoint(tree):
        return False
    names = [tree[key] for key in _NAME_KEYS if _is_name(tree.get(key))]
    return any(map(names_credential, names))


def _are_schemas(properties: dict[str, Any]) -> bool:
    return all(
        isinstance(schema, bool)
        or ((isinstance(schema, dict) and _SCHEMA_WORDS.intersection(schema)) or schema == {})
        for schema in properties.values()
    )


_SCHEMA_WORDS: Final = frozenset(
    ("type", "$ref", "enum", "const", "oneOf", "anyOf", "allOf", "items", "properties")
)


def _array(tree: list[Any], reader: Redacts) -> list[Any]:
    if tree and all(isinstance(item, str) for item in tree):
        return _texts(tree, reader)
    made = [redacted(item, reader) for item in tree]
    for index, item in enumerate(tree):  # headers as pairs of a name and a value
        if _is_pair(item) and item[1] is not None and names_credential(item[0], item[1]):
            made[index] = [made[index][0], SECRET]
    return tree if all(map(is_, made, tree)) else made


def _is_pair(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and _is_name(item[0])


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _texts(tree: list[str], reader: Redacts) -> list[str]:
    """Lines of a text, or the arguments of a command."""
    made = reader.texts(tree, "\n")
    for index, (item, following) in enumerate(itertools.pairwise(tree), 1):
        if _FLAG.fullmatch(item) and names_credential(item) and not following.startswith("-"):
            made[index] = SECRET
    return made


def embedded(text: str) -> dict[str, Any] | list[Any] | None:
    """The JSON object or array that a text is, None for any other text."""
    if text[:1] not in _OPENING or text[-1:] not in _CLOSING or text.startswith("[REDACTED:"):
        return None
    try:
        found = parse(text.encode(), _LIMITS)
    except UnicodeEncodeError:
        return None
    return None if isinstance(found, Refusal) or not isinstance(found, dict | list) else found
