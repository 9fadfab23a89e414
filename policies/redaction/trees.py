"""Walks JSON trees for the redactor: credential-named keys, lists, and JSON inside of texts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, Final

from hookbus.codecs.strict import Limits, encode, parse
from hookbus.codecs.verdict import Refusal
from hookbus.policies.redaction.contract import Redacts
from hookbus.policies.redaction.names import names_credential
from hookbus.policies.redaction.spans import SECRET

_LIMITS: Final = Limits(max_depth=64)
_NAME_KEYS: Final = ("name", "key", "header", "field", "variable", "Name", "Key")
_VALUE_KEYS: Final = frozenset(("value", "Value", "values", "default"))
_NAME: Final = re.compile(r"[\w.-]{1,128}")
_FLAG: Final = re.compile(r"--?[A-Za-z][\w-]{1,64}")


def redacted(tree: Any, reader: Redacts) -> Any:
    """The tree, redacted, in the same shape."""
    if isinstance(tree, str):
        return reader.text(tree)
    if isinstance(tree, dict):
        return _object(tree, reader)
    if isinstance(tree, list):
        return _array(tree, reader)
    if isinstance(tree, int | float) and not isinstance(tree, bool):
        return SECRET if reader.number_is_secret(tree) else tree
    return tree


def _object(tree: dict[str, Any], reader: Redacts) -> dict[str, Any]:
    """The properties of a JSON Schema are named like what they ask for, and are no credentials."""
    named = _names_a_credential(tree)
    made: dict[str, Any] = {}
    for key, value in tree.items():
        if key == "properties" and isinstance(value, dict) and _are_schemas(value):
            made[key] = {name: redacted(schema, reader) for name, schema in value.items()}
        elif value is not None and (names_credential(key, value) or (named and key in _VALUE_KEYS)):
            made[key] = SECRET
        else:
            made[key] = redacted(value, reader)
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
    return made


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


def embedded(text: str, tree: Callable[[Any], Any], plain: Callable[[str], str]) -> str:
    """A text that is a JSON object or array, redacted as such; any other by `plain`."""
    found = _parsed(text)
    if found is None:
        return plain(text)
    made = tree(found)
    return text if made == found else encode(made).decode()


def is_tree(text: str) -> bool:
    """Whether a text is a JSON object or array."""
    return _parsed(text) is not None


def _parsed(text: str) -> dict[str, Any] | list[Any] | None:
    if text[:1] not in ("{", "[") or text[-1:] not in ("}", "]"):
        return None
    if text.startswith("[REDACTED:"):
        return None
    try:
        found = parse(text.encode(), _LIMITS)
    except UnicodeEncodeError:
        return None
    return None if isinstance(found, Refusal) or not isinstance(found, dict | list) else found
