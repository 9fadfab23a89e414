"""The rules of AEP streams: what breaks them, and what doesn't."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbus.codecs.aep_stream import Streams, Violation
from hookbus.codecs.decode import Decoder
from hookbus.codecs.event import Event
from hookbus.codecs.strict import encode
from tests.corpus import aep_events as corpus
from tests.upstream import golden, needs_upstream

_DECODER = Decoder()
Tree = dict[str, Any]


class Story:
    """Events of one agent, one after another; each has an id and a position of its own."""

    def __init__(self, most: int = 100) -> None:
        self.streams = Streams(most)
        self.number = 0

    def event(self, kind: str, **more: Any) -> Tree:
        self.number += 1
        event = corpus.minimal(kind) | {"id": f"e{self.number}"}
        if "seq" in event:
            event["seq"] = self.number
        return event | more

    def see(self, event: Tree, *, refuted: bool = False) -> Violation | None:
        decoded = _DECODER.decode(encode(event))
        assert isinstance(decoded, Event), decoded
        return self.streams.see(decoded, refuted=refuted)

    def tell(self, kind: str, **more: Any) -> str | None:
        violation = self.see(self.event(kind, **more))
        return None if violation is None else violation.rule


@pytest.fixture
def story() -> Story:
    return Story()


@needs_upstream
def test_the_golden_events_break_nothing_also_when_all_come_twice() -> None:
    """A redelivery is never a violation, whatever came between."""
    streams = Streams(1000)
    for line in golden() * 2:
        event = _DECODER.decode(line)
        assert isinstance(event, Event)
        assert streams.see(event) is None


def test_an_event_with_the_same_content_in_another_layout_is_a_redelivery(story: Story) -> None:
    """Member order and blanks are no content."""
    event = story.event("run.finished", run="r1", big=2**70)
    assert story.see(event) is None
    again = _DECODER.decode(json.dumps(dict(reversed(event.items())), indent=1).encode())
    assert isinstance(again, Event)
    assert story.streams.see(again) is None


def test_an_id_is_its_sources(story: Story) -> None:
    """Another content under it is a violation for the same source only, with or without session."""
    for kind in ("progress.status", "agent.idle"):
        event = story.event(kind)
        assert story.see(event) is None
        assert story.see({**event, "severity": "debug"}) == Violation("id", "/id")
        assert story.see({**event, "severity": "debug", "source": "urn:other"}) is None


def test_positions_rise(story: Story) -> None:
    """Gaps are legal, a late position is not, and it moves nothing."""
    positions = [(0, 1), (0, 5), (2, 0), (2, 1)]
    for epoch, seq in positions:
        assert story.tell("progress.status", epoch=epoch, seq=seq) is None
    assert story.tell("progress.status", epoch=2, seq=1) == "seq"
    assert story.tell("progress.status", epoch=2, seq=0) == "seq"
    assert story.tell("progress.status", epoch=1, seq=9) == "epoch"
    assert story.tell("progress.status", seq=9) == "epoch"
    assert story.tell("progress.status", epoch=2, seq=2) is None


def test_sessions_of_one_name_are_two_for_two_sources(story: Story) -> None:
    """A session is known by its source and name."""
    assert story.tell("progress.status", seq=5) is None
    assert story.tell("progress.status", seq=1, source="urn:other") is None
    assert story.tell("session.ended", source="urn:other") is None
    assert story.tell("attention.requested", seq=6) is None


@pytest.mark.parametrize("second", ["run.finished", "run.failed", "run.cancelled"])
def test_a_run_ends_once_whatever_the_epoch(story: Story, second: str) -> None:
    """Another run of the session may end too, and one without a name proves nothing."""
    assert story.tell("run.finished", run="r1") is None
    assert story.tell(second, run="r2") is None
    assert story.tell(second) is None
    assert story.tell(second, run="r1", epoch=1) == "run_terminal"


def test_a_session_ends_once(story: Story) -> None:
    """A distinct second end is one too many."""
    assert story.tell("session.ended") is None
    assert story.tell("session.ended") == "session_terminal"


@pytest.mark.parametrize("terminal", ["attention.resolved", "attention.timeout"])
def test_a_request_has_one_terminal_before_the_end(story: Story, terminal: str) -> None:
    """An answer is none; the second terminal is one too many."""
    request = story.event("attention.requested")
    assert story.see(request) is None
    assert story.tell("attention.answered", subject=request["id"]) is None
    assert story.tell("session.ended") == "attention_open"
    assert story.tell(terminal, subject=request["id"]) is None
    assert story.tell("attention.timeout", subject=request["id"]) == "attention_terminal"


def test_a_request_comes_before_its_terminal_and_before_the_end(story: Story) -> None:
    """What came after stays open."""
    request = story.event("attention.requested", seq=50)
    assert story.tell("attention.resolved", subject=request["id"]) is None
    assert story.see(request) == Violation("attention_order", "/type")
    assert story.tell("session.ended", seq=51) == "attention_open"
    assert story.tell("attention.requested", seq=52) == "attention_order"


def test_a_command_is_decided_once_by_each_source(story: Story) -> None:
    """Accepted and rejected alike."""
    assert story.tell("control.accepted", cause="c1") is None
    assert story.tell("control.rejected", cause="c1") == "ack"
    assert story.tell("control.rejected", cause="c2") is None
    assert story.tell("control.accepted", cause="c1", source="urn:other") is None
    assert story.tell("control.accepted") is None


@pytest.mark.parametrize(
    "kind",
    [
        *("attention.answered", "attention.resolved", "attention.timeout", "attention.routed"),
        "control.attention.respond",
    ],
)
def test_what_is_about_a_request_names_it(story: Story, kind: str) -> None:
    """Without a subject it is about none; a request itself needs no subject."""
    assert story.tell(kind) == "subject"
    assert story.tell("attention.requested") is None


def test_an_answer_that_had_to_be_rejected_breaks_a_rule_once(story: Story) -> None:
    """Its redelivery doesn't."""
    event = story.event("attention.answered", subject="e0")
    assert story.see(event, refuted=True) == Violation("answer", "/data/answer")
    assert story.see(event, refuted=True) is None


def test_events_of_ahp_have_no_stream() -> None:
    """They are passed over."""
    event = Event("ahp", "session.end", "urn:x", "1", "t", {"id": "1"}, b"")
    streams = Streams(10)
    assert streams.see(event) is None
    assert streams.see(event) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_positions_are_judged_by_the_highest_before(positions: list[tuple[int, int]]) -> None:
    """Whatever the order in which they come."""
    story, highest = Story(), (-1, -1)
    for epoch, seq in positions:
        rule = story.tell("progress.status", epoch=epoch, seq=seq)
        late = "epoch" if epoch < highest[0] else "seq"
        assert rule == (None if (epoch, seq) > highest else late)
        highest = max(highest, (epoch, seq))


_PICK = st.tuples(
    st.sampled_from(
        [
            *("progress.status", "run.finished", "session.ended", "attention.requested"),
            *("attention.resolved", "attention.timeout", "control.accepted", "agent.idle"),
        ]
    ),
    st.integers(0, 4),
)


@given(st.lists(_PICK, max_size=40), st.integers(1, 8))
def test_a_short_memory_misses_and_never_invents(picks: list[tuple[str, int]], most: int) -> None:
    """Whoever remembers less finds fault only where a longer memory does."""
    long, short = Story(1000), Story(most)
    for kind, pick in picks:
        names: Tree = {"subject": f"e{4 * pick}", "cause": f"c{pick}"}
        if not kind.startswith("agent."):
            names |= {"run": f"r{pick}", "session": f"s{pick % 2}"}
        event = long.event(kind, **names)
        found = short.see(event)
        assert long.see(event) is not None or found is None


def test_memory_is_bounded(story: Story) -> None:
    """What is forgotten is missed: an open request that is too long ago no longer counts."""
    small = Story(3)
    first = small.event("attention.requested")
    assert small.see(first) is None
    for _ in range(3):
        request = small.event("attention.requested")
        assert small.see(request) is None
        assert small.tell("attention.resolved", subject=request["id"]) is None
    assert small.tell("session.ended") is None
    for number in range(50):
        small.tell("progress.status", session=f"s{number}", run=f"r{number}")
    assert all(len(table._values) <= 3 for table in vars(small.streams).values())
