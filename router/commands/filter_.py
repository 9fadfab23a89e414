"""`hookbus filter`; see `hookbus.router.usage.filter_`."""

from __future__ import annotations

import argparse
import json
from typing import Any

import orjson

from hookbus.codecs.carried import carries, unwrap
from hookbus.codecs.verdict import Refusal
from hookbus.policies.match import InvalidFilter, compile_filter
from hookbus.router.commands.common import lines, write_line
from hookbus.router.errors import ConfigError


def execute(options: argparse.Namespace) -> int:
    try:
        wanted = compile_filter(json.loads(options.match, object_pairs_hook=_without_duplicates))
    except (InvalidFilter, ValueError, RecursionError) as error:
        raise ConfigError([f"invalid-filter: {error}"]) from error
    for line in lines(options.file):
        event = _event(line)
        if event is not None and wanted.matches(event):
            write_line(line)
    return 0


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise InvalidFilter("a member is there twice")
    return dict(pairs)


def _event(line: bytes) -> dict[str, Any] | None:
    """The event in a line, bare, in a JSON-RPC message or in a CloudEvent."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, dict) and "jsonrpc" in value:
        params = value.get("params")
        value = params.get("event") if isinstance(params, dict) else None
    if not isinstance(value, dict):
        return None
    if carries(value) is None:
        return value
    carried = unwrap(value, line)
    return None if isinstance(carried, Refusal) else carried.tree
