"""What a registration document says, and what is wrong with it: the shape as the official validator
judges it, then the rules that no schema states, all of it at once."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from agenthooksprotocol.runtime import Validator
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.codecs.compiled import Compiled
from hookbus.codecs.formats import is_uri
from hookbus.codecs.registration import (
    Bearer,
    HeaderSource,
    Http,
    OAuth,
    Registrations,
    Stdio,
    selects,
)
from hookbus.schemas import loader
from tests.codecs.conftest import EXAMPLES
from tests.corpus import events

JSON = dict[str, Any]

CANARY = "s3cret-canary"

OBSERVE: JSON = {"events": ["tool.*"], "mode": "observe", "content": {"default": "metadata"}}
INTERCEPT: JSON = {
    "events": ["tool.before"],
    "mode": "intercept",
    "timeoutMs": 500,
    "failurePolicy": "fail-closed",
    "content": {"default": "omit"},
}


READER = Registrations()


def backend(*subscriptions: JSON, **members: Any) -> JSON:
    transport = {"type": "http", "url": "https://siem.example/hooks"}
    told: JSON = {"id": "com.example.siem", "transport": transport}
    if subscriptions:
        told["subscriptions"] = list(subscriptions)
    return {**told, **members}


def document(*backends: Any, **members: Any) -> JSON:
    tree = {"protocolVersion": "draft", "hooks": list(backends), **members}
    alone: JSON = json.loads(json.dumps(tree))  # no two members share an object
    return alone


def maximal() -> JSON:
    """Every member that AHP knows, in every form."""
    oauth = {
        "type": "oauth",
        "resource": "urn:r",
        "issuer": "https://issuer.example",
        "clientId": "c",
        "clientSecretRef": "s",
        "flow": "client_credentials",
        "scopes": ["a", "b"],
    }
    upload = {
        "endpoint": "http://127.0.0.1:8080/up",
        "auth": {"type": "bearer", "tokenRef": "vault"},
        "timeoutMs": 1,
        "maxBytes": 0,
    }
    extras = {
        "includeNative": True,
        "upload": upload,
        "filters": {"toolKinds": ["shell"], "paths": ["/src"]},
        "scope": "managed",
        "disableable": False,
    }
    headers = {"X-One": "1", "X-Two": {"valueEnv": "TWO"}, "X-Three": {"valueRef": "three"}}
    http = {"type": "http", "url": "https://siem.example/hooks", "headers": headers}
    stdio = {
        "type": "stdio",
        "command": "hook",
        "args": ["-v"],
        "lifecycle": "per_event",
        "cwd": "/",
        "env": {"A": "b"},
    }
    content = {"default": "body", "reasoning": "omit", "skills": "metadata"}
    return document(
        backend(
            {**OBSERVE, **extras, "events": ["*", "session.end"], "content": content},
            {**INTERCEPT, **extras},
            transport=http,
            authentication={"type": "bearer", "tokenEnv": "TOKEN"},
        ),
        backend(OBSERVE, id="org.example.two", authentication=oauth),
        backend(INTERCEPT, id="org.example.three", transport=stdio),
        backend(id="org.example.four"),
    )


def problems(value: Any) -> dict[str, str]:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    found = READER.read(raw).problems
    return {finding.path: finding.text for finding in found}


_NEWLINE = re.compile(r'\\n"')
_OFFICIAL = Validator()
_SHAPES = Compiled(loader.load_registration(), {"uri": is_uri})
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 1.0, -1, 0.5, 2**70, "", "x", "x\n", "a.b", "a.b\n", "a..b"),
    *("*", "tool.*", "tool.*\n", "foo.*", "tool.permission.*", ".*", "**", "Tool.*", "turn.end"),
    *("tool.before", "hook.failure", "http", "stdio", "bearer", "oauth", "mtls", "observe"),
    *("intercept", "managed", "project", "user", "body", "omit", "all", "fail-open", "draft"),
    *("1.0", "persistent", "http://x", "https://x/y z", "HTTPS://x", "https://[::1", "ftp://x"),
    *("http://127.0.0.1", "urn:x", "http://localhost:1/x", "http://127.0.0.1.example", "http://"),
    *("http://localhost", "http://[::1]?q", "a\r", "a\u0000b", "\u00e9", [], {}, ["x", "x"]),
    *(["x"], [1], [""], ["*"], ["*", "*"], {"valueEnv": "A"}, {"valueRef": ""}, {"valueEnv": "1"}),
    *({"valueEnv": "A", "valueRef": "b"}, {"default": "body"}, {"type": "http", "url": "http://x"}),
    *({"type": "bearer", "tokenEnv": "A"}, {"type": "stdio"}),
)
_NAMES = (
    *("id", "type", "events", "mode", "content", "timeoutMs", "failurePolicy", "scope", "url"),
    *("disableable", "contentReceiver", "authentication", "transport", "tokenEnv", "tokenRef"),
    *("valueEnv", "valueRef", "default", "x", "X-A", "a b", "a\n", "", "headers", "subscriptions"),
    *("filters", "toolKinds", "upload", "hooks", "protocolVersion", "includeNative", "flow"),
    *("scopes", "auth", "env"),
)
_BASES = (
    *(document(hook) for hook in maximal()["hooks"]),
    document(backend(OBSERVE)),
    document(backend(INTERCEPT)),
    document(backend({**OBSERVE, "upload": maximal()["hooks"][0]["subscriptions"][0]["upload"]})),
)


def _places(tree: Any) -> list[tuple[Any, Any]]:
    steps = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    return [place for step in list(steps) for place in ((tree, step), *_places(tree[step]))]


@st.composite
def near_documents(draw: st.DrawFn) -> JSON:
    """A document with none to three changes."""
    tree = copy.deepcopy(draw(st.sampled_from(_BASES)))
    for _ in range(draw(st.integers(0, 3))):
        places = _places(tree)
        at = st.integers(0, max(0, len(places) - 1))
        holder, step = places[draw(at)] if places else (tree, "hooks")
        value = copy.deepcopy(draw(st.sampled_from(_VALUES)))
        match draw(st.sampled_from(("remove", "replace", "replace", "add", "borrow"))):
            case "remove" if places:
                del holder[step]
            case "add" if isinstance(holder, dict):
                holder[draw(st.sampled_from(_NAMES))] = value
            case "borrow" if places:
                other, there = places[draw(at)]
                holder[step] = copy.deepcopy(other[there])
            case _:
                holder[step] = value
    return tree  # type: ignore[no-any-return]


def official(tree: Any) -> bool:
    try:
        _OFFICIAL.validate("registration", tree)
    except Exception:  # noqa: BLE001 - it also fails on values that it doesn't expect
        return False
    return True


def _agree(tree: Any) -> None:
    whole = _SHAPES.check("registration", tree) is None
    told = [text for text in problems(tree).values() if text.startswith("is not valid")]
    assert whole == (not told), told
    accepted = official(tree)
    stricter = accepted and _NEWLINE.search(json.dumps(tree))  # the listed deviation
    assert whole == accepted or stricter


@settings(deadline=None, max_examples=max(1, EXAMPLES // 3))
@given(near_documents())
def test_the_verdict_on_a_shape_is_the_official_one(tree: JSON) -> None:
    _agree(tree)


@pytest.mark.parametrize("value", [None, [], "x", {}, {"hooks": []}, document(), document(1)])
def test_what_is_no_document_is_refused_as_officially(value: Any) -> None:
    _agree(value)
    assert problems(value)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("id", "com.example\n"),
        ("events", ["tool.*\n"]),
        ("tokenEnv", "TOKEN\n"),
        ("header", "X-One\n"),
        ("valueEnv", "TWO\n"),
    ],
)
def test_a_trailing_newline_is_refused_where_the_official_validator_lets_it_through(
    place: str, value: Any
) -> None:
    tree = document(backend(OBSERVE))
    (hook,) = tree["hooks"]
    match place:
        case "id":
            hook["id"] = value
        case "events":
            hook["subscriptions"] = [{**OBSERVE, "events": value}]
        case "tokenEnv":
            hook["authentication"] = {"type": "bearer", "tokenEnv": value}
        case "header":
            hook["transport"]["headers"] = {value: "1"}
        case "valueEnv":
            hook["transport"]["headers"] = {"X": {"valueEnv": value}}
    assert official(tree)
    assert problems(tree)


def _enum(definition: str) -> list[str]:
    listed: list[str] = loader.load_registration()["definitions"][definition]["then"]["enum"]
    return sorted(listed)


def test_what_can_be_observed_and_intercepted_is_what_the_events_schemas_say() -> None:
    schemas = loader.load()
    assert _enum("observed") == sorted(loader.event_types(schemas))
    assert _enum("intercepted") == sorted(events.INTERCEPTABLE)


def test_every_member_is_read() -> None:
    reading = READER.read(json.dumps(maximal()).encode())
    assert (reading.problems, reading.unknown) == ((), ())
    one, two, three, four = reading.backends
    headers = {"X-One": "1", "X-Two": HeaderSource("TWO"), "X-Three": HeaderSource(None, "three")}
    assert one.transport == Http("https://siem.example/hooks", headers)
    assert one.authentication == Bearer("TOKEN")
    assert isinstance(two.authentication, OAuth)
    assert isinstance(three.transport, Stdio)
    assert four.subscriptions is None
    assert one.subscriptions is not None
    observe, intercept = one.subscriptions.values()
    assert (observe.mode, intercept.mode) == ("observe", "intercept")
    assert observe.content == {"default": "body", "reasoning": "omit", "skills": "metadata"}
    assert observe.include_native
    assert observe.filters == {"toolKinds": ["shell"], "paths": ["/src"]}
    assert (observe.scope, observe.upload is not None) == ("managed", True)


def test_native_is_left_out_and_the_scope_the_users_if_nothing_is_said() -> None:
    (only,) = READER.read(json.dumps(document(backend(OBSERVE))).encode()).backends
    assert only.subscriptions is not None
    assert not only.subscriptions[0].include_native
    assert only.subscriptions[0].scope == "user"


@pytest.mark.parametrize(
    ("selector", "event", "wanted"),
    [
        ("*", "hook.failure", True),
        ("tool.*", "tool.before", True),
        ("tool.*", "tool.permission.request", True),
        ("tool.*", "tools.before", False),
        ("tool.before", "tool.before", True),
        ("tool.before", "tool.before.x", False),
    ],
)
def test_a_selector_means_everything_a_family_or_one_type(
    selector: str, event: str, wanted: bool
) -> None:
    assert selects(selector, event) == wanted


@pytest.mark.parametrize(
    ("raw", "path", "code"),
    [
        (b'{"hooks": [], "hooks": []}', "/hooks", "duplicate_key"),
        (b'{"hooks": [{"authentication": {"token": 1, "token": 2}}]}', None, "duplicate_key"),
        (b'{"protocolVersion": "draft"', "", "invalid_json"),
        (b"\xff", "", "invalid_utf8"),
        (b"[NaN]", "", "invalid_json"),
        (b"[" * 200 + b"]" * 200, "", "too_deep"),
    ],
)
def test_bytes_that_are_not_strict_json_are_refused(
    raw: bytes, path: str | None, code: str
) -> None:
    ((there, text),) = problems(raw).items()
    assert text == f"is refused as {code}"
    assert path is None or there == path


def test_two_backends_may_not_have_one_id() -> None:
    tree = document(backend(OBSERVE), backend(OBSERVE, id="a.b"), backend(OBSERVE))
    assert problems(tree) == {
        "/hooks/0/id": "another backend has this id too",
        "/hooks/2/id": "another backend has this id too",
    }


@pytest.mark.parametrize(
    ("subscription", "events", "faulty"),
    [
        (OBSERVE, ["tool.*", "foo.*"], 1),
        (INTERCEPT, ["hook.*"], 0),
        (INTERCEPT, ["file.*", "*"], 0),
        (INTERCEPT, ["tool.*", "turn.*", "*"], None),
        (OBSERVE, ["hook.*", "file.*", "*"], None),
    ],
)
def test_a_selector_has_to_select_something_in_its_mode(
    subscription: JSON, events: list[str], faulty: int | None
) -> None:
    found = problems(document(backend({**subscription, "events": events})))
    expected = f"/hooks/0/subscriptions/0/events/{faulty}"
    assert list(found) == ([] if faulty is None else [expected])


def test_all_problems_are_told_at_once_each_with_its_place() -> None:
    transport = {
        "type": "http",
        "url": "siem.example",
        "headers": {"X-A": f"{CANARY}\r\n", "X-B": {"valueEnv": "9"}, "X-C": "fine", "X-D": "\0"},
    }
    tree = document(
        backend(
            {**OBSERVE, "events": ["foo.*"]},
            {**OBSERVE, "timeoutMs": 1},
            {**INTERCEPT, "events": ["turn.end"]},
            {**OBSERVE, "content": {"text": "body"}},
            {**OBSERVE, "scope": "managed"},
            transport=transport,
            authentication={"type": "mtls"},
        ),
        backend(OBSERVE, id="nodots", subscriptions=[]),
        backend(OBSERVE, id="a.b", transport={"type": "stdio"}, contentReceiver={}),
        backend(OBSERVE),
        CANARY,
        protocolVersion=CANARY,
    )
    assert list(problems(tree)) == [
        "/protocolVersion",
        "/hooks/0/id",
        "/hooks/0/transport/headers/X-A",
        "/hooks/0/transport/headers/X-B/valueEnv",
        "/hooks/0/transport/headers/X-D",
        "/hooks/0/transport/url",
        "/hooks/0/authentication/type",
        "/hooks/0/subscriptions/0/events/0",
        "/hooks/0/subscriptions/1/timeoutMs",
        "/hooks/0/subscriptions/2/events/0",
        "/hooks/0/subscriptions/3/content",
        "/hooks/0/subscriptions/4",
        "/hooks/1/id",
        "/hooks/2/contentReceiver",
        "/hooks/2/transport",
        "/hooks/3/id",
        "/hooks/4",
    ]


def test_authentication_is_not_for_a_process() -> None:
    stdio = {"type": "stdio", "command": "x", "lifecycle": "persistent"}
    bearer = {"type": "bearer", "tokenEnv": "A"}
    found = problems(document(backend(OBSERVE, transport=stdio, authentication=bearer)))
    assert list(found) == ["/hooks/0/authentication"]


def test_unknown_members_are_told_and_ignored() -> None:
    tree = maximal()
    (hook, *_) = tree["hooks"]
    tree["x"] = hook["y"] = hook["transport"]["proxy"] = hook["subscriptions"][1]["z"] = CANARY
    hook["subscriptions"][0]["filters"]["hosts"] = [CANARY]
    hook["authentication"]["token"] = CANARY
    reading = READER.read(json.dumps(tree).encode())
    assert reading.problems == ()
    assert sorted(finding.path for finding in reading.unknown) == [
        "/hooks/0/authentication/token",
        "/hooks/0/subscriptions/0/filters/hosts",
        "/hooks/0/subscriptions/1/z",
        "/hooks/0/transport/proxy",
        "/hooks/0/y",
        "/x",
    ]


@given(st.data())
def test_no_value_is_ever_quoted(data: st.DataObject) -> None:
    """Nor is a name that doesn't look like one."""
    tree = maximal()
    places = _places(tree)
    chosen = data.draw(st.lists(st.integers(0, len(places) - 1), min_size=1, max_size=4))
    for holder, step in map(places.__getitem__, chosen):
        holder[step] = data.draw(st.sampled_from((CANARY, [CANARY], {f"a {CANARY}": 1})))
        if isinstance(holder, dict):
            holder[f"{CANARY}: Bearer"] = 1
    reading = READER.read(json.dumps(tree).encode())
    said = [
        text for found in (*reading.problems, *reading.unknown) for text in (found.path, found.text)
    ]
    assert CANARY not in " ".join(said)
