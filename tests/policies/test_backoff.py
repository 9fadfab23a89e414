"""The waits between attempts."""

from __future__ import annotations

from itertools import islice
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from hookbus.policies.backoff import delays, patient

seconds = st.floats(min_value=0.0, max_value=1e9, allow_nan=False)


@given(initial=seconds, maximum=seconds, seed=st.integers())
def test_no_wait_is_negative_or_above_the_maximum(
    initial: float, maximum: float, seed: int
) -> None:
    """Whatever the settings, a wait lies between 0 and the maximum, however many came before."""
    waits = list(islice(delays(initial, maximum, Random(seed).random), 80))
    assert all(0.0 <= wait <= maximum for wait in waits)


def test_the_ceiling_doubles_up_to_the_maximum() -> None:
    """With the jitter taken out the ceilings themselves are seen."""
    assert list(islice(delays(1.0, 5.0, lambda: 1.0), 5)) == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_the_jitter_is_full() -> None:
    """A wait may be anything down to nothing, so that a herd spreads out."""
    assert list(islice(delays(1.0, 8.0, iter([0.0, 0.5, 0.25]).__next__), 3)) == [0.0, 1.0, 1.0]


@given(delay=seconds, retry_after=st.none() | seconds, maximum=seconds)
def test_a_backend_can_ask_for_patience_but_not_beyond_the_maximum(
    delay: float, retry_after: float | None, maximum: float
) -> None:
    """The wait is the longer of the two, cut at the operator's maximum."""
    wait = patient(delay, retry_after, maximum)
    assert 0.0 <= wait <= maximum
    assert wait == maximum or wait >= max(delay, retry_after or 0.0)
