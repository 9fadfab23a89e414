"""The headers of a record."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from hookbus.codecs.headers import (
    Attributes,
    escape,
    read_headers,
    unescape,
    write_headers,
)

text = st.text(st.characters(exclude_categories=["Cs"]))
attributes = st.builds(
    Attributes,
    id=text,
    source=text,
    type=text,
    capture=text,
    time=st.none() | text,
    body=st.none() | text,
)


def test_an_event_is_described_by_cloudevents_headers() -> None:
    """Names and order are those that the design gives, and the type is bare."""
    event = Attributes(
        id="evt-1",
        source="urn:example:agent:1",
        type="tool.before",
        time="2026-08-24T08:51:14Z",
        capture="metadata",
    )
    assert write_headers(event) == (
        ("ce_specversion", b"1.0"),
        ("ce_id", b"evt-1"),
        ("ce_source", b"urn:example:agent:1"),
        ("ce_type", b"tool.before"),
        ("ce_time", b"2026-08-24T08:51:14Z"),
        ("hookbus-capture", b"metadata"),
    )


def test_a_nonconforming_body_is_named() -> None:
    """The code of a withheld body is a header of its own."""
    event = Attributes(id="1", source="urn:a", type="t", capture="full", body="body_json")
    assert write_headers(event)[-1] == ("hookbus-body", b"body_json")


def test_the_example_of_the_cloudevents_binding_is_encoded_as_it_says() -> None:
    """CloudEvents HTTP binding 1.0.2, section 3.1.3.2."""
    assert escape("Euro € 😀") == b"Euro%20%E2%82%AC%20%F0%9F%98%80"
    assert escape('a"b%c\x7f\r\n') == b"a%22b%25c%7F%0D%0A"


@given(attributes)
@example(Attributes(id="evt-1\r\nX-Admin: 1", source="urn:a\n", type="t", capture="full"))
def test_headers_are_printable_ascii_and_read_back(event: Attributes) -> None:
    """Identifiers of any kind come back as they were, and nothing of them is raw on the way."""
    headers = write_headers(event)
    assert all(0x21 <= byte <= 0x7E and byte != 0x22 for _, value in headers for byte in value)
    assert read_headers(headers) == event


@given(st.binary())
def test_no_foreign_value_breaks_the_reader(value: bytes) -> None:
    """A header that another producer wrote is read as text or not at all."""
    assert unescape(value) is None or isinstance(unescape(value), str)


def test_records_without_the_headers_of_an_event_have_none() -> None:
    """A missing name, another CloudEvents version and a value that is no text are refused."""
    good = write_headers(Attributes(id="1", source="urn:a", type="t", capture="full"))
    assert read_headers(()) is None
    assert read_headers(good[:-1]) is None
    assert read_headers((("ce_specversion", b"0.3"), *good[1:])) is None
    assert read_headers((*good, ("ce_id", b"%FF"))) is None


def test_of_a_name_that_comes_twice_the_last_counts() -> None:
    """As Kafka's own clients read headers; foreign names are passed over."""
    good = write_headers(Attributes(id="1", source="urn:a", type="t", capture="full"))
    read = read_headers((("traceparent", b"00"), *good, ("ce_id", b"2")))
    assert read is not None
    assert read.id == "2"
