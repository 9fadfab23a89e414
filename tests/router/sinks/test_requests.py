"""The headers of the requests that an HTTP sink makes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbus.codecs.headers import Attributes, write_headers
from hookbus.router.replays.attempts import place_of, replayed
from hookbus.router.sinks.requests import authorization, header_problems, idempotency_key
from hookbus.router.types import Headers, Record

MakeRecord = Callable[..., Record]
TOPICS = frozenset({"hookbus.siem", "agents.hooks"})


def of(event_id: str, source: str = "urn:a") -> Headers:
    """The record headers of an event."""
    return write_headers(Attributes(id=event_id, source=source, type="t", capture="full"))


@pytest.mark.parametrize(
    "headers",
    [{}, {"X-Tenant": "a b\tc"}, {"Authorization": "Basic x"}, {"x-empty": ""}, {"Cookie": "a=b"}],
)
def test_good_headers_have_no_problem(headers: dict[str, str]) -> None:
    """Any name and value of RFC 9110 that the sink doesn't set itself."""
    assert list(header_problems(headers, bearer=False)) == []


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"X-A\r\nX-Admin": "1"}, "is not a header name"),
        ({"": "1"}, "is not a header name"),
        ({"X A": "1"}, "is not a header name"),
        ({"X-A:": "1"}, "is not a header name"),
        ({"X-Ä": "1"}, "is not a header name"),
        ({"X-A": "hush\r\nX-Admin: 1"}, "no header may have"),
        ({"X-A": "hush\0"}, "no header may have"),
        ({"X-A": "hush "}, "no header may have"),
        ({"X-A": "hüsh"}, "no header may have"),
        ({"Content-Length": "3"}, "set by the sink"),
        ({"transfer-encoding": "chunked"}, "set by the sink"),
        ({"Host": "evil"}, "set by the sink"),
        ({"IDEMPOTENCY-KEY": "1"}, "set by the sink"),
        ({"Authorization": "Basic x"}, "set by the sink"),
        ({"X-A": "1", "x-a": "2"}, "given twice"),
    ],
)
def test_bad_headers_are_told_without_their_values(headers: dict[str, str], problem: str) -> None:
    """One problem each, naming the header."""
    told = list(header_problems(headers, bearer=True))
    assert len(told) == 1
    assert problem in told[0]
    assert "hush" not in told[0]
    assert "\n" not in told[0]


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX-Admin: 1", "a\n", "ä", "a\0"])
def test_a_token_that_would_break_the_header_is_none(token: str) -> None:
    """Nothing of it is sent."""
    assert authorization(token) is None


def test_a_token_is_a_bearer_token() -> None:
    """RFC 6750, section 2.1."""
    assert authorization("abc.DEF-1_~+/=") == "Bearer abc.DEF-1_~+/="


def test_the_key_is_the_same_for_every_copy_of_an_event(make_record: MakeRecord) -> None:
    """Wherever the record lies and however its content was cut."""
    first = idempotency_key("siem", TOPICS, make_record(1, b"{}", of("evt-1")))
    assert first == idempotency_key("siem", TOPICS, make_record(9, b'{"id":1}', of("evt-1")))


def test_keys_differ_by_sink_source_and_id(make_record: MakeRecord) -> None:
    """Identity is the pair, never the id alone, and no two pairs run together."""
    records = [of("evt-1"), of("evt-2"), of("evt-1", "urn:b"), of("a", "b,c"), of("c", "a,b")]
    keys = {idempotency_key("siem", TOPICS, make_record(1, b"{}", headers)) for headers in records}
    keys |= {
        idempotency_key("other", TOPICS, make_record(1, b"{}", headers)) for headers in records
    }
    assert len(keys) == 10


def test_a_record_without_identity_goes_by_its_place(make_record: MakeRecord) -> None:
    """Topic, partition and offset are as stable."""
    key = idempotency_key("a", TOPICS, make_record(1, b"{}"))
    assert key == idempotency_key("a", TOPICS, make_record(1, b"[]"))
    assert key != idempotency_key("a", TOPICS, make_record(2, b"{}"))


@pytest.mark.parametrize("headers", [of("evt-1"), ()])
def test_a_replay_has_the_key_of_the_first_delivery(
    make_record: MakeRecord, headers: Headers
) -> None:
    """It says where the event was, by its identity or its place."""
    first = make_record(1, b"{}", headers)
    again = replayed(headers, 1, place_of(first))
    replay = Record("hookbus.replay.siem", 3, 7, 1, None, b"{}", again)
    assert idempotency_key("siem", TOPICS, replay) == idempotency_key("siem", TOPICS, first)


@pytest.mark.parametrize("headers", [of("evt-1"), ()])
def test_only_a_record_of_the_replay_topic_is_believed_to_be_a_replay(
    make_record: MakeRecord, headers: Headers
) -> None:
    """A producer whose topic a sink reads can't take the key of another topic's event."""
    first = make_record(1, b"{}", headers)
    forged = Record("agents.hooks", 3, 7, 1, None, b"{}", replayed(headers, 1, place_of(first)))
    plain = Record("agents.hooks", 3, 7, 1, None, b"{}", headers)
    key = idempotency_key("siem", TOPICS, forged)
    assert key == idempotency_key("siem", TOPICS, plain)
    assert key != idempotency_key("siem", TOPICS, first)


@given(st.binary(), st.binary())
def test_a_key_is_hex_whatever_the_producer_chose(source: bytes, event_id: bytes) -> None:
    """Record headers that are no text at all give a key too."""
    record = Record("t", 0, 0, 0, None, b"{}", (("ce_source", source), ("ce_id", event_id)))
    assert re.fullmatch("[0-9a-f]{64}", idempotency_key("siem", TOPICS, record))
