"""Values close to valid events: the places where two validators might disagree."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from tests.corpus import events

Tree = Any
Step = str | int

_ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    0.5,
    -0.0,
    1e300,
    2**53,
    2**64,
    -(2**70),
    "",
    " ",
    "x",
    "x\n",
    [],
    {},
    [None],
    {"id": "x"},
    {"id": ""},
    ["x", "x"],
    [{"path": "url", "reason": "r"}],
)
_WORDS = (
    *("body", "metadata", "omit", "text", "attachment", "text/plain", "text/html", "TEXT/plain"),
    *("application/json", "application/json\n", "application/LD+Json;x=1", "a/b/c+json"),
    *("image/png", "application/xml", "image/png\n", "json", "text", "audio/json5"),
    *("executed", "skipped", "policy"),
    *("supplied_result", "cancelled", "timeout", "other", "ok", "error", "denied", "completed"),
    *("failed", "native", "mcp", "http", "sse", "stdio", "_", "_x", "_\n", "stdio\n", "ftp://x"),
    *("https://x", "http://", "https://x y", "HTTPS://x", "amount", "total", "attempt", "turn"),
    *("mixed", "EUR", "EUR\n", "eur", "EU", "created", "moved", "deleted", "modified", "user"),
    *("assistant", "tool", "clear", "fork", "startup", "form", "url", "accept", "reject"),
    *("observe",),
    *("intercept", "managed", "deny", "modify", "flow", "inject", "stop", "continue", "a.b"),
    *("draft",),
    *("2026-02-30T00:00:00Z", "2026-08-24 08:51:14Z", "2026-08-24t08:51:14z", "20260824T085114Z"),
    *("2026-08-24T08:51:14+0100", "2026-08-24T08:51:14-23:59", "2026-08-24T08:51:14", "urn:x"),
    *("urn:", ":x", "a b:c", "mailto:\u00e9", "http://[::1]", "http://[::1", "x:%zz", "0f" * 32),
    *("0.2", "tool", "tool.Completed", "tool.x\n", "x.acme.foo", "x.ac-me.foo.bar", "agent.x"),
    *("x.a.control.b", "control.x", "banana.peeled", "attention.routed", "select", "2-3-4-5"),
    *(f"00-{'a' * 32}-{'b' * 16}-01", f"00-{'a' * 32}-{'b' * 16}-01\n", "critical", "redacted"),
    *("0F" * 32, "0f" * 32 + "\n", "0f" * 31, "hook.failure", "tool.before", "session.start"),
)
_NAMES = (
    *("id", "type", "text", "body", "gap", "size", "sha256", "category", "outcome", "execution"),
    *("error", "usage", "latencyMs", "finishReason", "durationMs", "fileChanges", "tool", "mcp"),
    *("previous", "proposed", "summary", "removed", "decision", "decidedBy", "after", "before"),
    *("previousPath", "detail", "reason", "url", "command", "args", "cwd", "address"),
    *("addressForm",),
    *("gaps", "identity", "batch", "session", "turn", "items", "extensions", "native", "x", "a.b"),
    *("a.b\n", "a..b", "a", "1.b", "a.b-c_d", "modify", "flow", "inject", "params", "state"),
    *("role",),
    *("seq", "run", "step", "epoch", "data", "cause", "acme1", "acme_1", "a" * 21, "acme\n"),
    *("input", "output", "form", "turns", "jsonrpc", "method", "resumedFrom", "workspaceRoots"),
)


def near_events() -> st.SearchStrategy[Tree]:
    """An event of any type with none to three changes."""
    return st.builds(_changed, _bases(), st.lists(_changes(), max_size=3))


def near(bases: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    """One of `bases`, which may be changed in place, with none to three changes."""
    return st.builds(_changed, bases, st.lists(_changes(), max_size=3))


def near_messages() -> st.SearchStrategy[tuple[str, Tree]]:
    """The name of a wrapper, and a message of it with none to three changes."""
    return st.one_of(
        st.tuples(st.just("observe-notification"), _near(events.observe, _bases())),
        st.tuples(
            st.just("intercept-request"),
            _near(events.intercept, _bases().filter(lambda e: e["type"] in events.INTERCEPTABLE)),
        ),
    )


def _near(wrap: Any, bases: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.builds(_changed, bases.map(wrap), st.lists(_changes(), max_size=3))


def _bases() -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.sampled_from(sorted(_MINIMAL)).map(lambda kind: copy.deepcopy(_MINIMAL[kind])),
        st.builds(
            lambda kind, pick: _thinned(_MAXIMAL[kind], pick),
            st.sampled_from(sorted(_MAXIMAL)),
            st.integers(0, 31),
        ),
    )


def _thinned(tree: Tree, pick: int) -> Tree:
    """A copy with one item left of each long list: validators take long over failing lists."""
    if isinstance(tree, dict):
        return {name: _thinned(member, pick) for name, member in tree.items()}
    if isinstance(tree, list):
        kept = tree if len(tree) < 3 else [tree[pick % len(tree)]]
        return [_thinned(item, pick) for item in kept]
    return tree


def _changes() -> st.SearchStrategy[tuple[str, int, Any, str]]:
    """What to do, to which place (an index into all places, from the outside in), with what."""
    return st.tuples(
        st.sampled_from(("remove", "replace", "word", "add", "duplicate", "as float", "borrow")),
        st.integers(0, 2000),
        st.one_of(st.sampled_from(_ODD), st.sampled_from(_WORDS)),
        st.sampled_from(_NAMES),
    )


def _changed(tree: Tree, changes: list[tuple[str, int, Any, str]]) -> Tree:
    for what, where, value, name in changes:
        places = _places(tree)
        if not places:
            break
        holder, step = places[where % len(places)]
        _change(what, holder, step, copy.deepcopy(value), name, places[where // 7 % len(places)])
    return tree


def _change(what: str, holder: Tree, step: Step, value: Any, name: str, other: Any) -> None:
    old = holder[step]
    match what:
        case "remove":
            del holder[step]
        case "replace":
            holder[step] = value
        case "word":
            holder[step] = value if isinstance(old, str) else [value]
        case "add" if isinstance(old, dict):
            old[name] = value
        case "add" if isinstance(old, list):
            old.append(value)
        case "add" if isinstance(holder, dict):
            holder[name] = value
        case "duplicate" if isinstance(old, list) and old:
            old.append(copy.deepcopy(old[0]))
        case "as float" if type(old) is int:
            holder[step] = float(old)
        case "borrow":
            holder[step] = copy.deepcopy(other[0][other[1]])
        case _:
            holder[step] = value


def _places(tree: Tree) -> list[tuple[Tree, Step]]:
    """Every member and item, outer ones first."""
    found: list[tuple[Tree, Step]] = []
    level = [tree]
    while level:
        inner: list[Tree] = []
        for node in level:
            steps = list(node) if isinstance(node, dict) else range(len(node))
            found += [(node, step) for step in steps]
            inner += [node[step] for step in steps if isinstance(node[step], dict | list)]
        level = inner
    return found


_MAXIMAL = events.maximal()
_MINIMAL = events.minimal()
