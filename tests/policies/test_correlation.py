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


def pending(most=100, age=24 * HOUR, most_answered=100, redelivered=30):
    return PendingRequests(most=most, age=age, most_answered=most_answered, redelivered=redelivered)


def asked_and_answered(store, count, first=0):
    """So many requests one after another, each answered at once; what the changelog hears."""
    changes: list[Change] = []
    for number in range(first, first + count):
        identity = Identity("urn:a", f"q{number}")
        changes += store.ask(identity, question(), at(2 * number))
        changes += store.answer(identity, reply(), at(2 * number + 1)).changes
    return changes


def compacted(changes):
    """What a changelog has in the end: the last value of each key."""
    last = {change.key: change for change in changes}
    return {key: change for key, change in last.items() if change.value is not None}


def restored(changes, **bounds):
    store = pending(**bounds)
    for change in changes:
        store.restore(change)
    return store


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


def test_of_the_answered_requests_those_that_were_answered_last_are_known():
    """A second result of one of the others is an orphan."""
    store = pending(most_answered=2)
    for number in (0, 1, 2):
        store.ask(Identity("urn:a", f"q{number}"), question(), at(number))
    for offset, number in enumerate((2, 0, 1), 3):
        store.answer(Identity("urn:a", f"q{number}"), reply(), at(offset))
    again = [store.answer(Identity("urn:a", f"q{n}"), reply(), at(9)) for n in (0, 1, 2)]
    assert [match.classification for match in again] == ["duplicate", "duplicate", "orphan"]


def test_answered_requests_leave_open_ones_their_room_and_the_other_way_round():
    """Each kind has a bound of its own."""
    store = pending(most=2, most_answered=2, redelivered=1)
    store.ask(Q1, question(), at(0))
    asked_and_answered(store, 20, first=2)
    for number in range(50, 55):
        store.ask(Identity("urn:a", f"q{number}"), question(), at(2 * number))
    assert store.answer(Identity("urn:a", "q21"), reply(), at(200)).classification == "duplicate"
    assert store.answer(Q1, reply(), at(201)).classification == "orphan"
    assert store.answer(Identity("urn:a", "q54"), reply(), at(202)).classification == "matched"


def test_the_changelog_holds_what_is_kept_and_nothing_else():
    """What was answered too long ago is deleted from it."""
    store = pending(most_answered=3, redelivered=4)
    left = compacted(asked_and_answered(store, 20))
    assert sorted(left) == [b'["urn:a","q%d"]' % number for number in range(15, 20)]
    assert len(store) == 5


def test_an_id_may_be_used_again_once_its_request_is_forgotten():
    """The new request outlives the deletion of the old one, which was still due."""
    store = pending(most_answered=1, redelivered=1)
    changes = asked_and_answered(store, 2)
    again = Identity("urn:a", "q0")
    changes += store.ask(again, question(), at(10))
    changes += asked_and_answered(store, 5, first=20)
    assert b'["urn:a","q0"]' in compacted(changes)
    assert store.answer(again, reply(), at(90)).classification == "matched"


def test_after_a_restore_the_bounds_hold_with_the_next_match():
    """Also where they were larger before; the changelog hears what is deleted."""
    changes = asked_and_answered(pending(), 20)
    store = restored(changes, most=5, most_answered=3, redelivered=4)
    changes += asked_and_answered(store, 1, first=20)
    assert len(store) == 5
    assert sorted(compacted(changes)) == [b'["urn:a","q%d"]' % n for n in range(16, 21)]


@given(st.permutations(range(8)))
def test_the_order_of_the_changelog_does_not_matter(order):
    """Open requests go by when they were asked, answered ones by when they were answered."""
    first = pending()
    changes = asked_and_answered(first, 4)
    for number in range(4, 8):
        changes += first.ask(Identity("urn:a", f"q{number}"), question(), at(2 * number))
    kept = list(compacted(changes).values())
    store = restored([kept[n] for n in order], most=4, most_answered=2, redelivered=0)
    changes += asked_and_answered(store, 1, first=8)
    assert sorted(compacted(changes)) == [b'["urn:a","q%d"]' % n for n in (3, 5, 6, 7, 8)]


def test_what_requests_have_in_common_is_held_once():
    """Servers ask the same form again and again; live and after a restore."""
    live, changes = pending(), []
    for number in range(2):
        asked = Question("s1", "srv", "form", f"t{number}", bytes(range(200)))
        changes += live.ask(Identity("urn:a", f"q{number}"), asked, at(number))
    for store in (live, restored(changes)):
        one, other = (
            store.answer(Identity("urn:a", f"q{number}"), reply(), at(9 + number)).question
            for number in range(2)
        )
        assert one.time != other.time
        assert one.form is other.form
        assert one.session is other.session


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


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.booleans()), max_size=60),
    st.integers(1, 3),
    st.integers(0, 10),
    st.integers(0, 60),
    st.randoms(use_true_random=False),
)
def test_a_restart_changes_no_classification_however_few_answered_requests_are_known(
    steps, most_answered, back, cut, random
):
    """As long as no more records come again than it was told; the changelog is compacted, and in
    any order."""
    records, asked = [], 0
    for offset, (is_request, age, yes) in enumerate(steps):
        asked += is_request
        name = f"q{asked if is_request else max(asked - age, 0)}"
        records.append((offset, (is_request, name, "s1", "yes" if yes else "no", 0)))
    bounds = {"most_answered": most_answered, "redelivered": back}
    whole = play(pending(**bounds), records, [])
    changes: list[Change] = []
    first = play(pending(**bounds), records[:cut], changes)
    kept = list(compacted(changes).values())
    random.shuffle(kept)
    resumed = max(0, min(cut, len(records)) - back)
    later: list[Change] = []
    again = play(restored(kept, **bounds), records[resumed:], later)
    results_before = sum(not record[0] for _, record in records[:resumed])
    assert first[:results_before] + again == whole
    every: list[Change] = []
    play(pending(**bounds), records, every)
    assert compacted(changes + later).keys() == compacted(every).keys()


def test_what_the_changelog_holds_that_cannot_be_read_is_ignored():
    """A foreign record in it costs nothing."""
    store = pending()
    for change in (Change(b"x", b"{}"), Change(b'["a","b"]', b"[]"), Change(b"", None)):
        store.restore(change)
    assert len(store) == 0
