"""Which request an elicitation result answers."""

from hypothesis import given
from hypothesis import strategies as st

from hookbus.policies.correlation import (
    Change,
    Identity,
    Moment,
    PendingRequests,
    Question,
    Reply,
)

HOUR = 3_600_000
Q1 = Identity("urn:a", "q1")


def question(session="s1", server="srv", mode="form"):
    return Question(session, server, mode, "2026-11-29T10:00:00Z")


def reply(session="s1", server="srv", mode="form", digest="yes"):
    return Reply(session, server, mode, digest)


def pending(most=100, age=24 * HOUR):
    return PendingRequests(most=most, age=age)


def at(offset, hours=0.0):
    return Moment(offset, int(hours * HOUR))


def test_the_first_result_of_its_request_matches_and_the_same_again_is_a_duplicate():
    """What another result says conflicts, and never replaces the first."""
    store = pending()
    store.ask(Q1, question(), at(0))
    assert store.answer(Q1, reply(), at(1)).classification == "matched"
    assert store.answer(Q1, reply(), at(2)).classification == "duplicate"
    assert store.answer(Q1, reply(digest="no"), at(3)).classification == "conflicting"
    assert store.answer(Q1, reply(), at(4)).classification == "duplicate"


def test_a_result_of_another_source_or_before_its_request_is_an_orphan():
    """Ids are unique per source only, and a delivery never waits for a match."""
    store = pending()
    assert store.answer(Q1, reply(), at(0)).classification == "orphan"
    store.ask(Q1, question(), at(1))
    assert store.answer(Identity("urn:b", "q1"), reply(), at(2)).classification == "orphan"
    assert store.answer(Q1, reply(), at(3)).classification == "matched"


def test_a_failed_match_consumes_nothing():
    """A result of another session, server or mode leaves the request open."""
    store = pending()
    store.ask(Q1, question(), at(0))
    for other in (reply(session="s2"), reply(session=None), reply(server="x"), reply(mode="url")):
        assert store.answer(Q1, other, at(1)).classification == "mismatched"
    assert store.answer(Q1, reply(), at(2)).classification == "matched"


def test_a_live_request_is_not_replaced_by_one_of_the_same_id():
    """The first one stays, whatever the second says."""
    store = pending()
    store.ask(Q1, question(), at(0))
    assert store.ask(Q1, question(server="other"), at(1)) == ()
    assert store.answer(Q1, reply(), at(2)).classification == "matched"


def test_a_result_after_the_age_limit_is_late():
    """A question that a person answered after 54 minutes is not; one after a day is."""
    store = pending()
    store.ask(Q1, question(), at(0))
    late = store.answer(Q1, reply(), at(1, hours=24.1))
    assert (late.classification, late.changes) == ("late", ())
    other = Identity("urn:a", "q2")
    store.ask(other, question(), at(2, hours=25))
    assert store.answer(other, reply(), at(3, hours=25.9)).classification == "matched"


def test_two_requests_may_be_settled_in_reverse():
    """Each result finds its own."""
    store = pending()
    q2 = Identity("urn:a", "q2")
    store.ask(Q1, question(), at(0))
    store.ask(q2, question(), at(1))
    assert store.answer(q2, reply(), at(2)).classification == "matched"
    assert store.answer(Q1, reply(), at(3)).classification == "matched"


def test_requests_are_bounded_in_number_and_age():
    """The oldest goes first, and the changelog hears of it."""
    store = pending(most=3)
    for number in range(5):
        changes = store.ask(Identity("urn:a", f"q{number}"), question(), at(number))
    assert len(store) == 3
    assert [change.value is None for change in changes] == [True, False]
    assert store.answer(Identity("urn:a", "q1"), reply(), at(9)).classification == "orphan"
    store.ask(Identity("urn:a", "new"), question(), at(10, hours=49))
    assert len(store) == 1


def test_a_record_that_comes_again_is_classified_as_before():
    """After a crash the same records are taken again; their copies must be the same."""
    store = pending()
    store.ask(Q1, question(), at(0))
    first = store.answer(Q1, reply(), at(1))
    assert store.ask(Q1, question(), at(0)) == ()
    again = store.answer(Q1, reply(), at(1))
    assert again.classification == first.classification == "matched"


steps = st.lists(
    st.tuples(
        st.booleans(),
        st.sampled_from(["q1", "q2", "q3"]),
        st.sampled_from(["s1", "s2"]),
        st.sampled_from(["yes", "no"]),
        st.integers(0, 30),
    ),
    max_size=30,
)


def play(store, records, changes):
    told = []
    for offset, (is_request, name, session, digest, hours) in records:
        identity, moment = Identity("urn:a", name), at(offset, hours)
        if is_request:
            changes += store.ask(identity, question(session), moment)
        else:
            match = store.answer(identity, reply(session, digest=digest), moment)
            changes += match.changes
            told.append(match.classification)
    return told


@given(steps, st.integers(0, 30), st.integers(0, 30))
def test_a_restart_from_the_changelog_changes_no_classification(records, cut, back):
    """Wherever the process dies, and however many records come again, what follows is classified
    as if it had not died."""
    numbered = list(enumerate(records))
    hours = sorted(record[4] for record in records)
    numbered = [(n, (*record[:4], hour)) for (n, record), hour in zip(numbered, hours, strict=True)]
    whole = play(pending(), numbered, [])
    changes: list[Change] = []
    first = play(pending(), numbered[:cut], changes)
    restored = pending()
    for change in changes:
        restored.restore(change)
    resumed = max(0, min(cut, len(numbered)) - back)
    again = play(restored, numbered[resumed:], [])
    results_before = sum(not record[0] for _, record in numbered[:resumed])
    assert first[:results_before] + again == whole


def test_what_the_changelog_holds_that_cannot_be_read_is_ignored():
    """A foreign record in it costs nothing."""
    store = pending()
    for change in (Change(b"x", b"{}"), Change(b'["a","b"]', b"[]"), Change(b"", None)):
        store.restore(change)
    assert len(store) == 0
