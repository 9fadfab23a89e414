"""W3C trace contexts, as they are read and passed on."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hookbus.codecs.trace_context import TraceContext, of_attributes, of_headers, read

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
OFFICIAL = TraceContextTextMapPropagator()


def official(parent: str) -> trace.SpanContext:
    """What OpenTelemetry reads."""
    found = OFFICIAL.extract({"traceparent": parent})
    return trace.get_current_span(found).get_span_context()


@st.composite
def parents(draw: st.DrawFn) -> str:
    """A `traceparent` with a place or two changed, cut off or added."""
    text = PARENT
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from(["", "0", "f", "ff", "-", "F", "g", "\n", "-0", "0" * 32]))
        text = text[:place] + piece + text[place + draw(st.integers(0, 2)) :]
    return text


@given(parents())
@example(f"00-{'0' * 32}-{SPAN}-01")
@example(f"00-{TRACE}-{'0' * 16}-01")
@example(f"ff-{TRACE}-{SPAN}-01")
@example(f"01-{TRACE}-{SPAN}-01-what.comes")
@example(f"00-{TRACE}-{SPAN}-01-more")
@example(f"01-{TRACE}-{SPAN}-01more")
@example(PARENT + "\n")
def test_what_is_read_is_what_opentelemetry_reads(parent: str) -> None:
    """The same ids from the same texts, and none from the others; a newline is malformed."""
    theirs, ours = official(parent), read(parent, None)
    if ours is None:
        assert not theirs.is_valid or "\n" in parent
    else:
        assert (int(ours.trace_id, 16), int(ours.span_id, 16)) == (theirs.trace_id, theirs.span_id)
        assert ours.sampled == theirs.trace_flags.sampled


@given(parents() | st.text(), st.none() | st.text())
def test_what_is_passed_on_is_valid_whatever_came(parent: str, state: str | None) -> None:
    """It reads back as itself: version 00, known flags, and a state of at most 512 characters."""
    found = read(parent, state)
    if found is not None:
        assert read(found.parent, found.state) == found
        assert len(found.parent) == 55
        assert len(found.state or "") <= 512


@given(st.lists(st.tuples(st.sampled_from(["traceparent", "tracestate", "x"]), st.binary())))
def test_no_header_breaks_the_reader(headers: list[tuple[str, bytes]]) -> None:
    """Bytes that are no text are no context."""
    found = of_headers(tuple(headers))
    assert found is None or read(found.parent, None) is not None


@pytest.mark.parametrize("value", [None, 1, True, [PARENT], {"traceparent": PARENT}, ""])
def test_an_attribute_that_is_no_text_is_no_context(value: object) -> None:
    """Attributes come from outside, of any type."""
    assert of_attributes({"traceparent": value}) is None
    assert of_attributes({"traceparent": PARENT, "tracestate": value}) == read(PARENT, None)


def test_of_a_header_that_comes_twice_the_last_counts() -> None:
    """As Kafka's own clients read headers."""
    other = PARENT.replace("4bf9", "1111").encode()
    found = of_headers((("traceparent", b"?"), ("traceparent", other), ("tracestate", b"a=1")))
    assert found == TraceContext(other.decode(), "a=1")


@pytest.mark.parametrize(
    ("state", "passed"),
    [
        ("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"),
        ("a=1 , ,\tb=2\t", "a=1,b=2"),
        ("1a-tenant@sys_tem=x y", "1a-tenant@sys_tem=x y"),
        ("", None),
        (" , ", None),
        ("a", None),
        ("a=", None),
        ("a=1,a=2", None),
        ("A=1", None),
        ("a=ü", None),
        ("a=1\r\nX-Admin: 1", None),
        ("a=1=2", None),
        (",".join(f"k{n}=v" for n in range(33)), None),
        ("a=1," + "b=" + "x" * 256, "a=1," + "b=" + "x" * 256),
        ("a=1," + "b=" + "x" * 257, None),
        ("a=1," * 3000, None),
    ],
)
def test_a_malformed_state_is_left_out_and_the_parent_stays(state: str, passed: str | None) -> None:
    """A list of members with distinct keys, or nothing of it."""
    assert read(PARENT, state) == TraceContext(PARENT, passed)


def test_a_state_that_is_too_long_loses_long_members_first_and_then_the_last() -> None:
    """Whole members go, as the standard asks, until 512 characters are left."""
    short = [f"k{n:02}=" + "x" * 20 for n in range(25)]
    found = read(PARENT, ",".join([*short, "long=" + "y" * 200]))
    assert found is not None
    assert found.state == ",".join(short[:20])


def test_a_state_goes_below_full_and_the_ids_stay() -> None:
    """The parent is a machine token; a state is text that anybody may have written."""
    context = TraceContext(PARENT, "vendor=anything")
    for level in ("none", "metadata", "redacted"):
        assert context.headers(level) == (("traceparent", PARENT.encode()),)
    assert context.headers("full")[1:] == (("tracestate", b"vendor=anything"),)
