"""Bytes to an event: how the kind is told, what an event holds, what a refusal says."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.strict import Limits, encode
from hookbus.codecs.verdict import Refusal
from tests.corpus import events

MINIMAL = events.minimal()
FAILURE = MINIMAL["hook.failure"]
CALL = MINIMAL["tool.before"]


def decode(decoder: Decoder, value: Any) -> Event | Refusal:
    return decoder.decode(value if isinstance(value, bytes) else json.dumps(value).encode())


def test_an_event_tells_what_it_is(decoder: Decoder) -> None:
    """The fields of an event come from the value; its bytes and tree are the value itself."""
    value = events.maximal()["tool.after"]
    raw = encode(value)
    event = decoder.decode(raw)
    assert isinstance(event, Event)
    assert (event.protocol, event.type, event.id) == ("ahp", "tool.after", "event-tool.after")
    assert (event.source, event.session) == ("urn:example:agent:1", "session-1")
    assert (event.emitter, event.time) == ("demo-harness", "2026-08-24T08:51:14.123+02:00")
    assert event.tree == value
    assert event.raw is raw


def test_a_session_is_optional(decoder: Decoder) -> None:
    """An event without a session has None there."""
    event = decode(decoder, FAILURE)
    assert isinstance(event, Event)
    assert event.session is None


@pytest.mark.parametrize("wrap", [events.observe, events.intercept])
def test_a_message_gives_the_event_inside(decoder: Decoder, wrap: Any) -> None:
    """The event of a JSON-RPC message has the very bytes that were inside, blanks and all."""
    inside = json.dumps(CALL, indent=3).replace('"native"', '"n\\u0061tive"')
    message = json.dumps(wrap({"here": 1, "type": "tool.before", "id": CALL["id"]}))
    place = json.dumps({"here": 1, "type": "tool.before", "id": CALL["id"]})
    event = decoder.decode(message.replace(place, inside).encode())
    assert isinstance(event, Event)
    assert event.raw == inside.encode()
    assert event.tree == CALL


def test_escaped_member_names_are_the_same_members(decoder: Decoder) -> None:
    """A message may spell its members with escapes."""
    raw = encode(events.observe(CALL)).replace(b'"params"', rb'"p\u0061rams"')
    event = decoder.decode(raw.replace(b'"event"', rb'"\u0065vent"'))
    assert isinstance(event, Event)
    assert event.raw == encode(CALL)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (b"1", Refusal("unknown_protocol")),
        ([CALL], Refusal("unknown_protocol")),
        ({}, Refusal("unknown_protocol")),
        ({"type": 1}, Refusal("unknown_protocol")),
        ({"aep": "0.1", "type": "tool.before"}, Refusal("schema", "", "required")),
        ({"specversion": "1.0", "type": "tool.before"}, Refusal("unknown_protocol")),
        ({"jsonrpc": "2.0", "method": "hooks/capabilities"}, Refusal("unknown_protocol")),
        ({"jsonrpc": "2.0", "method": ["hooks/observe"]}, Refusal("unknown_protocol")),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, Refusal("unknown_protocol")),
        ({"type": "tool.error"}, Refusal("unsupported_type", "/type")),
        (CALL | {"type": "tool.*"}, Refusal("unsupported_type", "/type")),
        ({"harness": 1}, Refusal("schema", "", "required")),
        (CALL | {"type": None}, Refusal("schema", "/type", "type")),
        ({"type": "tool.before"}, Refusal("schema", "", "required")),
    ],
)
def test_the_kind_is_told_from_the_value(decoder: Decoder, value: Any, verdict: Refusal) -> None:
    """No protocol, a protocol's unknown type, and a known type's broken shape are told apart."""
    assert decode(decoder, value) == verdict


@pytest.mark.parametrize("extra", ["jsonrpc", "aep", "specversion", "method", "params"])
def test_an_event_may_have_members_of_other_protocols(decoder: Decoder, extra: str) -> None:
    """The envelope is open: a valid AHP event stays one, whatever else is in it."""
    assert isinstance(decode(decoder, CALL | {extra: "1.0"}), Event)


@pytest.mark.parametrize(
    ("wrap", "change", "verdict"),
    [
        (events.observe, {"id": None}, Refusal("schema", "/id", "not")),
        (events.observe, {"jsonrpc": "1.0"}, Refusal("schema", "/jsonrpc", "const")),
        (events.observe, {"params": []}, Refusal("schema", "/params", "type")),
        (events.observe, {"params": None}, Refusal("schema", "/params", "type")),
        (events.observe, {"params": {"event": CALL}}, Refusal("schema", "/params", "required")),
        (
            events.observe,
            {"params": {"protocolVersion": "1", "event": CALL}},
            Refusal("schema", "/params/protocolVersion", "const"),
        ),
        (
            events.observe,
            {"params": {"protocolVersion": "draft", "event": CALL | {"id": ""}}},
            Refusal("schema", "/params/event/id", "minLength"),
        ),
        (
            events.observe,
            {"params": {"protocolVersion": "draft", "event": CALL | {"type": "x"}}},
            Refusal("unsupported_type", "/params/event/type"),
        ),
        (events.intercept, {"id": "another"}, Refusal("schema", "/id", "const")),
        (events.intercept, {"id": 7}, Refusal("schema", "/id", "const")),
        (events.intercept, {"id": None}, Refusal("schema", "/id", "type")),
    ],
)
def test_a_broken_message_is_refused_where_it_breaks(
    decoder: Decoder, wrap: Any, change: dict[str, Any], verdict: Refusal
) -> None:
    """The pointer is one into the message as it came."""
    assert decode(decoder, wrap(CALL) | change) == verdict


@pytest.mark.parametrize(
    ("kind", "change", "verdict"),
    [
        (
            "tool.before",
            {"capabilities": {"effects": ["a.b"]}},
            Refusal("schema", "/params/capabilities/effects/0", "enum"),
        ),
        (
            "tool.before",
            {"capabilities": {"effects": ["modify"]}},
            Refusal("schema", "/params/capabilities", "required"),
        ),
        (
            "turn.start",
            {"capabilities": {"effects": ["allow"]}},
            Refusal("schema", "/params/capabilities/effects/0", "enum"),
        ),
        (
            "model.request.before",
            {"state": {"permission": "none", "candidate": {"value": "text"}}},
            Refusal("schema", "/params/state/candidate/value", "type"),
        ),
        (
            "user.elicitation.request",
            {"state": {"permission": "none", "candidate": {"value": {"action": "reject"}}}},
            Refusal("schema", "/params/state/candidate/value/action", "enum"),
        ),
        ("tool.before", {"state": {}}, Refusal("schema", "/params/state", "required")),
    ],
)
def test_an_intercept_request_offers_what_its_type_allows(
    decoder: Decoder, kind: str, change: dict[str, Any], verdict: Refusal
) -> None:
    """Capabilities and state are judged by the type of the event."""
    message = events.intercept(MINIMAL[kind])
    message["params"] |= change
    assert decode(decoder, message) == verdict


def test_a_reference_that_is_not_uploaded_yet_stays_off_the_wire(decoder: Decoder) -> None:
    """A message whose event refers to a pending attachment is refused, as officially; a bare event
    is not, and opaque JSON may say the same words."""
    part = {"id": "p", "kind": "attachment", "mediaType": "image/png", "selection": "body"}
    pending = CALL | {"items": [part | {"body": {"ref": "ahp:owned:pending"}}]}
    opaque = CALL | {"native": {"body": {"ref": "ahp:owned:pending"}}}
    refusal = Refusal("schema", "/params/event/items/0/body/ref", "not")
    assert decode(decoder, events.observe(pending)) == refusal
    escaped = encode(events.observe(pending)).replace(b"pending", rb"p\u0065nding")
    assert decoder.decode(escaped) == refusal
    assert isinstance(decode(decoder, pending), Event)
    assert isinstance(decode(decoder, events.observe(opaque)), Event)


# --- cases that users of comparable systems reported -------------------------------------------


def test_a_repeated_type_is_refused(decoder: Decoder) -> None:
    """C01: a first-wins and a last-wins reader would act on different events."""
    raw = encode(FAILURE).replace(b'"type":', b'"type":"session.end","type":')
    assert decoder.decode(raw) == Refusal("duplicate_key", "/type")


def test_bad_utf8_is_refused_wherever_it_is(decoder: Decoder) -> None:
    """C02: a Latin-1 byte in the opaque `native` is refused too."""
    raw = encode(FAILURE | {"native": {"note": "?"}}).replace(b"?", base64.b64decode("/A=="))
    assert decoder.decode(raw) == Refusal("invalid_utf8")


def test_a_number_beyond_a_double_is_refused(decoder: Decoder) -> None:
    """C04: 1e400 never becomes infinity, null or a clamped number."""
    raw = encode(MINIMAL["tool.after"] | {"durationMs": 77}).replace(b"77", b"1e400")
    assert decoder.decode(raw) == Refusal("number_range")


def test_a_whole_float_is_an_integer(decoder: Decoder) -> None:
    """C06: 3.0 counts turns, and keeps its spelling; 3.5 doesn't."""
    value = FAILURE | {"session": {"id": "s", "counters": {"turns": 3.0}}}
    event = decode(decoder, value)
    assert isinstance(event, Event)
    assert b'"turns": 3.0' in event.raw
    value["session"]["counters"]["turns"] = 3.5
    assert decode(decoder, value) == Refusal("schema", "/session/counters/turns", "type")


def test_a_boolean_is_no_number(decoder: Decoder) -> None:
    """C07: true turns are none."""
    value = FAILURE | {"session": {"id": "s", "counters": {"turns": True}}}
    assert decode(decoder, value) == Refusal("schema", "/session/counters/turns", "type")


@pytest.mark.parametrize(
    ("moment", "valid"),
    [
        ("2026-08-24T08:51:14+0100", False),
        ("2026-08-24T08:51:14Z\n", False),
        ("2026-08-24t08:51:14z", True),
        ("2026-02-30T00:00:00Z", False),
        ("2026-12-31T23:59:60Z", True),
        ("2026-12-31T23:58:60Z", False),
    ],
)
def test_times_have_one_verdict_on_all_paths(decoder: Decoder, moment: str, valid: bool) -> None:
    """C09: the verdict is RFC 3339's, on the fast path and on the slow one."""
    fast = FAILURE | {"time": moment}
    slow = fast | {"session": {"id": "s", "counters": {"turns": 1.0}}}
    for value in (fast, slow):
        if valid:
            assert isinstance(decode(decoder, value), Event)
        else:
            assert decode(decoder, value) == Refusal("schema", "/time", "format")


def test_a_failure_is_not_interceptable(decoder: Decoder) -> None:
    """C11: an intercept request may carry 19 of the 32 types."""
    message = events.intercept(CALL)
    message["id"] = FAILURE["id"]
    message["params"] |= {"event": FAILURE, "capabilities": {"effects": []}}
    assert decode(decoder, message) == Refusal("schema", "/params/event/type", "enum")


def test_the_refusal_of_a_union_names_the_place(decoder: Decoder) -> None:
    """C12: the branch is picked by `type`, and the pointer leads to the fault in it."""
    value = CALL | {"tool": CALL["tool"] | {"input": ["ls"]}}
    assert decode(decoder, value) == Refusal("schema", "/tool/input", "type")


@pytest.mark.parametrize("depth", [64, 1000, 1025, 100_000])
def test_deep_nesting_has_one_verdict(decoder: Decoder, depth: int) -> None:
    """C14: 64 arrays in `native` pass; more than the limit is refused, within milliseconds."""
    raw = encode(FAILURE | {"native": "?"}).replace(b'"?"', b"[" * depth + b"]" * depth)
    start = time.process_time()
    verdict = decoder.decode(raw)
    assert time.process_time() - start < 0.5
    assert isinstance(verdict, Event) if depth == 64 else verdict == Refusal("too_deep")


@pytest.mark.parametrize("selection", ["metadata", "omit"])
def test_a_part_without_a_body_has_no_text(decoder: Decoder, selection: str) -> None:
    """C16: the label is not believed over the content."""
    part = {"id": "p", "kind": "text", "mediaType": "text/plain", "selection": selection}
    assert isinstance(decode(decoder, FAILURE | {"items": [part]}), Event)
    value = FAILURE | {"items": [part | {"text": "hi"}]}
    assert decode(decoder, value) == Refusal("schema", "/items/0/text", "not")


@pytest.mark.parametrize("member", ["parentEventId", "session", "extensions"])
def test_null_is_not_absent(decoder: Decoder, member: str) -> None:
    """C17: no member of the envelope may be null."""
    assert decode(decoder, FAILURE | {member: None}) == Refusal("schema", f"/{member}", "type")


def test_actions_have_no_synonyms(decoder: Decoder) -> None:
    """C56: `reject` is not `decline`."""
    value = MINIMAL["user.elicitation.result"]
    value = value | {"elicitation": value["elicitation"] | {"action": "reject"}}
    assert decode(decoder, value) == Refusal("schema", "/elicitation/action", "enum")


@pytest.mark.parametrize("name", ["com.example\n", "plain", "com..example", "1.b"])
def test_extensions_have_dotted_names(decoder: Decoder, name: str) -> None:
    """A name with a trailing newline is refused, unlike officially; names are not quoted."""
    value = FAILURE | {"extensions": {name: 1}}
    verdict = decode(decoder, value)
    assert isinstance(verdict, Refusal)
    assert (verdict.code, verdict.path) == ("schema", "/extensions")


def test_media_types_of_attachments_are_not_text(decoder: Decoder) -> None:
    """JSON in any spelling is refused as an attachment, with a trailing newline too."""
    part = {"id": "p", "kind": "attachment", "selection": "omit"}
    for media, valid in (("image/png", True), ("application/xml", True), ("Text/x", False)):
        verdict = decode(decoder, FAILURE | {"items": [part | {"mediaType": media}]})
        assert isinstance(verdict, Event) is valid
    for media in ("application/json", "a/b+JSON;x=1", "application/json\n"):
        verdict = decode(decoder, FAILURE | {"items": [part | {"mediaType": media}]})
        assert verdict == Refusal("schema", "/items/0/mediaType", "not")


# --- limits and robustness ----------------------------------------------------------------------


def test_limits_hold_for_the_value_as_it_came() -> None:
    """One byte more than the limit is too large, whatever is in it."""
    raw = encode(FAILURE)
    assert isinstance(Decoder(Limits(max_bytes=len(raw))).decode(raw), Event)
    assert Decoder(Limits(max_bytes=len(raw) - 1)).decode(raw) == Refusal("too_large")


@settings(deadline=None)
@given(raw=st.binary(max_size=60))
def test_no_bytes_raise(decoder: Decoder, raw: bytes) -> None:
    """Any bytes get a verdict."""
    assert isinstance(decoder.decode(raw), Refusal)


@settings(deadline=None)
@given(
    tree=st.dictionaries(
        st.sampled_from(["jsonrpc", "method", "params", "harness", "type", "aep", "id", "event"]),
        st.sampled_from(
            (
                None,
                1,
                "2.0",
                "hooks/observe",
                "hooks/intercept",
                {},
                [],
                {"event": {}},
                CALL,
                {"event": {"type": "tool.before"}},
                {"event": CALL},
                "tool.before",
                True,
            )
        ),
    )
)
def test_no_message_raises(decoder: Decoder, tree: Any) -> None:
    """Any object that looks a little like a message or an event gets a verdict."""
    assert isinstance(decoder.decode(encode(tree)), Event | Refusal)


def test_a_secret_key_is_not_quoted(decoder: Decoder) -> None:
    """Names that no schema names are content: a pointer ends before them."""
    value = FAILURE | {"session": {"id": "s", "counters": {"canary": -1}}}
    assert decode(decoder, value) == Refusal("schema", "/session/counters", "minimum")
    raw = encode(FAILURE | {"native": {"canary": 1}}).replace(
        b'"canary":1', b'"canary":1,"canary":2'
    )
    assert decoder.decode(raw) == Refusal("duplicate_key", "/native")


def test_a_decoder_is_ready_soon() -> None:
    """Import and construction take no time that a command line would feel: schemas are compiled
    when a value needs them, not before."""
    script = "from hookbus.codecs.decode import Decoder; Decoder()"
    start = os.times()
    subprocess.run([sys.executable, "-c", script], check=True)
    spent = os.times()
    assert spent.children_user - start.children_user < 1


def test_the_self_test_refuses_formats_that_check_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a bad date would pass, there is no decoder."""
    monkeypatch.setattr("hookbus.codecs.ahp.is_date_time", lambda text: True)
    with pytest.raises(RuntimeError, match="self-test"):
        Decoder()
