"""The verdict on any value equals the official one, apart from the listed deviations.

The deviations that these values can meet: a trailing newline is refused everywhere, and an
intercept request must have its event's id.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from hookbus.codecs.compiled import Compiled
from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.formats import is_date_time, is_uri
from hookbus.codecs.strict import encode
from hookbus.codecs.typed import Types
from hookbus.codecs.verdict import Refusal
from hookbus.schemas.loader import event_types, load, reference
from tests.codecs.conftest import EXAMPLES, Official
from tests.corpus import events
from tests.corpus.mutations import near_events, near_messages

Corpus = Callable[[], dict[str, dict[str, Any]]]

_SCHEMAS = load()
_FORMATS = {"uri": is_uri, "date-time": is_date_time}
_TYPES = Types(_SCHEMAS, _FORMATS)
_COMPILED = Compiled(_SCHEMAS, _FORMATS)
_DECODERS = {
    kind: msgspec.json.Decoder(_TYPES.of(reference(kind))) for kind in event_types(_SCHEMAS)
}


def _properties(share: float) -> settings:
    return settings(
        max_examples=max(1, int(EXAMPLES * share)),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def _has_newline(value: Any) -> bool:
    return '\\n"' in json.dumps(value)


@pytest.mark.parametrize("corpus", [events.maximal, events.minimal])
def test_the_whole_corpus_is_accepted_by_both(
    corpus: Corpus, decoder: Decoder, official: Official
) -> None:
    """Every event, and every message around one, is valid for the official validator and ours."""
    values = [("event", event) for event in corpus().values()]
    values += [("observe-notification", events.observe(event)) for _, event in values]
    values += [
        ("intercept-request", events.intercept(event))
        for kind, event in corpus().items()
        if kind in events.INTERCEPTABLE
    ]
    assert len(values) == 32 + 32 + 19
    for kind, value in values:
        assert official.accepts(kind, value), value
        assert isinstance(decoder.decode(encode(value)), Event), value


@pytest.mark.parametrize("corpus", [events.maximal, events.minimal])
def test_the_derived_types_accept_the_whole_corpus(corpus: Corpus) -> None:
    """No event of the corpus needs the slow schema: the hot path knows every type in full."""
    for kind, event in corpus().items():
        _DECODERS[kind].decode(encode(event))


@_properties(0.6)
@given(value=near_events())
def test_events_get_the_official_verdict(decoder: Decoder, official: Official, value: Any) -> None:
    """A value near a valid event is accepted exactly if the official validator accepts it."""
    ours = isinstance(decoder.decode(encode(value)), Event)
    theirs = official.accepts_event(value)
    assert ours == theirs or (theirs and _has_newline(value))


@_properties(0.05)
@given(named=near_messages())
def test_messages_get_the_official_verdict(
    decoder: Decoder, official: Official, named: tuple[str, Any]
) -> None:
    """A message near a valid one is accepted exactly if the official validator accepts it."""
    kind, value = named
    verdict = decoder.decode(encode(value))
    theirs = official.accepts(kind, value)
    listed = _has_newline(value) or verdict == Refusal("schema", "/id", "const")
    assert isinstance(verdict, Event) == theirs or (theirs and listed)


@_properties(0.2)
@given(value=near_events())
def test_a_derived_type_accepts_only_what_its_schema_accepts(value: Any) -> None:
    """The typed path is sound: what it decodes, the compiled schema accepts as well."""
    decoder = _DECODERS.get(value["type"]) if isinstance(value.get("type"), str) else None
    if decoder is None:
        return
    try:
        decoder.decode(encode(value))
    except msgspec.DecodeError:
        return
    assert _COMPILED.check(value["type"], value) is None


@_properties(0.15)
@given(value=near_events())
def test_no_refusal_holds_content(decoder: Decoder, value: Any) -> None:
    """The path of a refusal is made of members that the schemas name, and of indices."""
    verdict = decoder.decode(encode(value))
    if isinstance(verdict, Refusal):
        assert events.CANARY not in repr(verdict).lower()
        for step in (verdict.path or "").split("/")[1:]:
            assert step.isdigit() or f'"{step}"' in _NAMED


_NAMED = json.dumps(_SCHEMAS)


def test_the_official_branch_speaks_for_the_union(official: Official) -> None:
    """The reference of the parity property, one branch of the union, says what the whole says."""
    for kind, event in events.minimal().items():
        for value in (event, event | {"id": ""}, event | {"harness": None}, event | {"turn": 1}):
            assert official.accepts_event(value) == official.accepts("event", value), kind
