"""The verdict on AEP events equals that of the reference schemas, apart from the listed deviations.

The deviation that these values can meet: a trailing newline is refused everywhere.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from hookbus.codecs.aep import AepJudge
from hookbus.codecs.compiled import Compiled
from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.formats import is_date_time, is_uri
from hookbus.codecs.strict import encode
from hookbus.codecs.verdict import Refusal
from tests.codecs.conftest import EXAMPLES
from tests.corpus import aep_events as corpus
from tests.corpus.mutations import near
from tests.upstream import FOLDER, cases, golden, load_json, needs_upstream

_SINGLE = [case for case in cases("invalid/cases.json") if "event" in case]
_UNREGISTERED = ("progress.x", "x.ac-me.session.changed", "x.acme.control.stop", "agent.x")


def _properties(share: float) -> settings:
    return settings(
        max_examples=max(1, int(EXAMPLES * share)),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def _reference() -> dict[str, Draft202012Validator]:
    """The reference schemas by type; that of the envelope is named by the empty text."""
    checker = FormatChecker()
    schemas = {"": load_json("aep-event.schema.json")}
    for entry in load_json("registry/types.json")["types"]:
        if entry["schema"]:
            schemas[entry["type"]] = load_json(f"types/{entry['schema']}")
    return {
        kind: Draft202012Validator(schema, format_checker=checker)
        for kind, schema in schemas.items()
    }


_REFERENCE = _reference() if FOLDER.is_dir() else {}


def _accepted_by_reference(event: Any) -> bool:
    if not _REFERENCE[""].is_valid(event):
        return False
    payload = _REFERENCE.get(event["type"])
    return payload is None or "data" not in event or payload.is_valid(event["data"])


def near_events() -> st.SearchStrategy[Any]:
    """An event of any registered or some unregistered type with none to three changes."""
    bases = st.one_of(
        st.sampled_from(corpus.TYPES).map(corpus.maximal),
        st.sampled_from(corpus.TYPES).map(corpus.minimal),
        st.sampled_from(_UNREGISTERED).map(
            lambda kind: corpus.envelope(kind, "full", data={"x": 1})
        ),
    )
    return near(bases)


@needs_upstream
def test_the_golden_events_are_accepted_with_what_they_say(decoder: Decoder) -> None:
    """All 64 of them."""
    assert len(golden()) == 64
    for line in golden():
        event, tree = decoder.decode(line), json.loads(line)
        assert isinstance(event, Event), line
        assert (event.protocol, event.type, event.raw) == ("aep", tree["type"], line)
        assert (event.source, event.id, event.time) == (tree["source"], tree["id"], tree["time"])
        assert (event.session, event.emitter) == (tree.get("session"), tree["agent"])


@needs_upstream
@pytest.mark.parametrize("case", _SINGLE, ids=[case["name"] for case in _SINGLE])
def test_the_invalid_events_are_refused(decoder: Decoder, case: Any) -> None:
    """Each single event of the fixture, by name."""
    verdict = decoder.decode(encode(case["event"]))
    assert isinstance(verdict, Refusal)
    assert verdict.code in ("schema", "unknown_protocol")


@needs_upstream
@_properties(1.0)
@given(value=near_events())
def test_events_get_the_verdict_of_the_reference_schemas(decoder: Decoder, value: Any) -> None:
    """A value near a valid event is accepted exactly if the reference schemas accept it."""
    verdict = decoder.decode(encode(value), "aep")
    theirs = _accepted_by_reference(value)
    assert isinstance(verdict, Event) == theirs or (theirs and '\\n"' in json.dumps(value))


@pytest.mark.parametrize("kind", corpus.TYPES)
def test_the_whole_corpus_is_accepted_without_the_slow_schema(kind: str) -> None:
    """The hot path knows every type in full, extension attributes included."""
    judge = AepJudge(corpus.SCHEMAS)
    for event in (corpus.maximal(kind), corpus.minimal(kind)):
        judge._decoders[kind].decode(encode(event))
        assert judge.event(event, encode(event)) is None


@_properties(0.3)
@given(value=near_events())
def test_a_derived_type_accepts_only_what_its_schema_accepts(value: Any) -> None:
    """The typed path is sound: what it lets pass, the compiled schema accepts as well."""
    kind = value.get("type")
    if (
        isinstance(kind, str)
        and kind in corpus.TYPES
        and _JUDGE.event(value, encode(value)) is None
    ):
        assert _COMPILED.check(kind, value) is None


_JUDGE = AepJudge(corpus.SCHEMAS)
_COMPILED = Compiled(corpus.SCHEMAS, {"uri": is_uri, "date-time": is_date_time})
_NAMED = json.dumps(corpus.SCHEMAS)


@_properties(0.2)
@given(value=near_events())
def test_no_refusal_holds_content(decoder: Decoder, value: Any) -> None:
    """The path of a refusal is made of members that the schemas name, and of indices."""
    verdict = decoder.decode(encode(value))
    if isinstance(verdict, Refusal):
        for step in (verdict.path or "").split("/")[1:]:
            assert step.isdigit() or f'"{step}"' in _NAMED


@pytest.mark.parametrize("kind", _UNREGISTERED)
def test_an_unregistered_type_is_judged_by_its_envelope(decoder: Decoder, kind: str) -> None:
    """Known categories grow, and vendors have their own types."""
    event = corpus.envelope(kind, data={"anything": [None]})
    if kind == "x.acme.control.stop":
        del event["seq"]
    assert isinstance(decoder.decode(encode(event)), Event)
    assert decoder.decode(encode({**event, "data": 1})) == Refusal("schema", "/data", "type")


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"aep": "0.2"}, Refusal("unknown_protocol", "/aep")),
        ({"aep": "1.0"}, Refusal("unknown_protocol", "/aep")),
        ({"aep": 0.1}, Refusal("schema", "/aep", "const")),
        ({"aep": "0.1\n"}, Refusal("unknown_protocol", "/aep")),
        ({"type": "banana.peeled"}, Refusal("schema", "/type", "pattern")),
        ({"type": "tool"}, Refusal("schema", "/type", "pattern")),
        ({"type": "progress.x\n"}, Refusal("schema", "/type", "pattern")),
        ({"type": 1}, Refusal("schema", "/type", "type")),
        ({"time": "2026-08-24T08:51:14"}, Refusal("schema", "/time", "format")),
        ({"time": "2026-08-24T08:51:14Z\n"}, Refusal("schema", "/time", "format")),
        ({"time": "2026-02-30T08:51:14Z"}, Refusal("schema", "/time", "format")),
        ({"source": "not a uri"}, Refusal("schema", "/source", "format")),
        ({"source": "urn:x\n"}, Refusal("schema", "/source", "format")),
        ({"subject": None}, Refusal("schema", "/subject", "type")),
        ({"capture": None}, Refusal("schema", "/capture", "enum")),
        ({"data": None}, Refusal("schema", "/data", "type")),
        ({"seq": True}, Refusal("schema", "/seq", "type")),
        ({"acme": None}, Refusal("schema", "", "type")),
        ({"acme": 0.5}, Refusal("schema", "", "type")),
        ({"acme\n": "x"}, Refusal("schema", "", "propertyNames")),
        ({"traceparent": f"00-{'a' * 32}-{'b' * 16}-01\n"}, None),
    ],
)
def test_a_refusal_says_where_and_which_rule(
    decoder: Decoder, change: dict[str, Any], verdict: Refusal | None
) -> None:
    """Another version is another protocol; all else breaks the schema at a place."""
    event = corpus.envelope("progress.status") | change
    expected = verdict or Refusal("schema", "/traceparent", "pattern")
    assert decoder.decode(encode(event)) == expected


def test_the_fields_that_must_be_there_must(decoder: Decoder) -> None:
    """Without any of its core attributes an event is refused."""
    event = corpus.envelope("progress.status")
    for name in event.keys() - {"aep"}:
        rest = {key: value for key, value in event.items() if key != name}
        assert decoder.decode(encode(rest)) == Refusal("schema", "", "required")


def test_an_ahp_event_may_have_a_member_named_aep(decoder: Decoder) -> None:
    """And an AEP event an extension attribute named `harness`: the object tells them apart."""
    ahp = {"aep": "0.1", "type": "tool.before", "harness": {"name": "x", "version": "1"}}
    assert decoder.decode(encode(ahp)) == Refusal("schema", "", "required")
    for names in ({"harness": "x"}, {"jsonrpc": "2.0", "method": "hooks/observe"}):
        aep = decoder.decode(encode(corpus.envelope("progress.status", **names)))
        assert isinstance(aep, Event)
        assert aep.protocol == "aep"


def test_an_extension_attribute_of_cloudevents_makes_no_cloudevent(decoder: Decoder) -> None:
    """What has `aep` is an AEP event, whatever else it has."""
    names = {"specversion": "1.0", "datacontenttype": "application/json"}
    event = decoder.decode(encode(corpus.envelope("progress.status", **names)))
    assert isinstance(event, Event)
    assert event.protocol == "aep"


def test_a_value_can_be_taken_to_be_of_one_protocol(decoder: Decoder) -> None:
    """Whatever its members say."""
    event = corpus.envelope("progress.status")
    assert isinstance(decoder.decode(encode(event), "aep"), Event)
    assert decoder.decode(encode(event), "ahp") == Refusal("unsupported_type", "/type")
    del event["aep"]
    assert decoder.decode(encode(event), "aep") == Refusal("schema", "", "required")
    assert decoder.decode(b"{}", "ahp") == Refusal("schema", "", "required")


def test_the_bytes_around_an_event_may_be_any_json_layout(decoder: Decoder) -> None:
    """Blanks, escapes and member order don't matter, and the bytes are kept as they came."""
    event = dict(reversed(corpus.maximal("tool.completed").items()))
    raw = msgspec.json.format(json.dumps(event).encode(), indent=2)
    decoded = decoder.decode(raw)
    assert isinstance(decoded, Event)
    assert decoded.raw == raw
