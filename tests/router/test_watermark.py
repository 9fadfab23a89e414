"""The watermark: contiguous over what was received."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from hookbus.router.watermark import Watermark

offsets = st.lists(st.integers(0, 10_000), unique=True, min_size=1, max_size=60).map(sorted)


def received(*numbers: int) -> Watermark:
    mark = Watermark()
    for number in numbers:
        mark.received(number)
    return mark


def test_an_unsettled_record_holds_the_commit_back() -> None:
    """Case C81: with 4 in flight the commit stays at 4, and jumps to 8 once it is done."""
    mark = received(1, 2, 3, 4, 5, 6, 7)
    for offset in (1, 2, 3, 5, 6, 7):
        assert mark.settled(offset) <= 4  # type: ignore[operator]
    assert mark.next == 4
    assert mark.settled(4) == 8


def test_holes_are_not_waited_for() -> None:
    """Case C82: offsets that were never received don't count."""
    mark = received(5, 6, 9)
    assert [mark.settled(offset) for offset in (5, 6, 9)] == [6, 7, 10]


def test_a_strange_or_repeated_offset_changes_nothing() -> None:
    """Settling twice, or what was never received, is not progress."""
    mark = received(5, 6)
    assert mark.settled(7) == 5
    assert mark.settled(5) == 6
    assert mark.settled(5) == 6
    assert Watermark().settled(3) is None


def test_asking_leaves_no_trace() -> None:
    """A commit that fails must not have moved anything."""
    mark = received(1, 2, 3)
    assert mark.after([1, 2]) == 3
    assert mark.next == 1
    assert mark.outstanding == 3


@given(offsets, st.randoms(use_true_random=False))
def test_the_commit_never_passes_an_unsettled_record(
    numbers: list[int], chance: random.Random
) -> None:
    """In any order of settling, everything below the commit is settled, and at the end it is past
    everything."""
    mark = received(*numbers)
    order = list(numbers)
    chance.shuffle(order)
    unsettled = set(numbers)
    last = mark.next
    for offset in order:
        foretold = mark.after([offset])
        reached = mark.settled(offset)
        unsettled.discard(offset)
        assert reached is not None
        assert last is not None
        assert reached == foretold
        assert reached >= last
        assert all(one >= reached for one in unsettled)
        last = reached
    assert last == numbers[-1] + 1
    assert mark.outstanding == 0


@given(offsets, st.randoms(use_true_random=False), st.integers(1, 8))
def test_receiving_and_settling_may_interleave(
    numbers: list[int], chance: random.Random, window: int
) -> None:
    """The commit is always right behind the longest settled run of what was received so far."""
    mark = Watermark()
    seen: list[int] = []
    done: set[int] = set()
    for number in numbers:
        mark.received(number)
        seen.append(number)
        for offset in chance.sample(seen, min(window, len(seen))):
            mark.settled(offset)
            done.add(offset)
        run = [one for index, one in enumerate(seen) if done.issuperset(seen[: index + 1])]
        assert mark.next == (run[-1] + 1 if run else seen[0])
