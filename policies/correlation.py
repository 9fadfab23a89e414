"""Which request an elicitation result answers (AHP, ELICITATION).

A result belongs to the pending request with the same `source`, whose id is its `parentEventId`, in
the same session, of the same server and mode. What is decided for a record is decided the same way
when the record comes again: every entry remembers the offsets of the records that made it, and one
that has been forgotten is kept for the records that may come again.
"""

from __future__ import annotations

from collections import OrderedDict
from sys import intern
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from hookbus.policies.shared_forms import shared_form

Classification = Literal["matched", "orphan", "late", "duplicate", "conflicting", "mismatched"]

_FORGOTTEN_AFTER: Final = 2
"""Requests stay known for twice their age limit, so that a late result can be told from an orphan
and a second one from a first."""


class Identity(Struct, frozen=True, array_like=True, gc=False, cache_hash=True):
    """An event is known by its source and id, never by its id alone."""

    source: str
    id: str


class Question(Struct, frozen=True, gc=False):
    """What of a request its results must agree with, and what they are judged by."""

    session: str | None
    server: str
    mode: str
    time: str
    """The event's own, RFC 3339."""
    form: bytes | None = None
    """The form as the codec encodes it; None where its body is not at hand."""


class Reply(Struct, frozen=True, gc=False):
    """What of a result its request must agree with; `digest` stands for the answer."""

    session: str | None
    server: str
    mode: str
    digest: str


class Moment(Struct, frozen=True, gc=False):
    """Where and when a record was taken: its offset, and its timestamp in ms."""

    offset: int
    timestamp: int


class Entry(Struct, frozen=True, gc=False):
    """A request that is known: open, answered, or too old."""

    question: Question
    asked: Moment
    answered_at: int | None = None
    """The offset of the result that matched."""
    digest: str | None = None


class Change(Struct, frozen=True):
    """A change to the changelog of pending requests; without a value the key is deleted."""

    key: bytes
    value: bytes | None


class Match(Struct, frozen=True):
    """What was found for a result; `question` is the request at hand, if it may be used."""

    classification: Classification
    question: Question | None
    changes: tuple[Change, ...] = ()


class Forgotten(Struct, frozen=True, gc=False):
    """An answered request that is known only to records before the offset `since`."""

    entry: Entry
    since: int


_Held = TypeVar("_Held", Entry, Forgotten)


class PendingRequests:
    """The requests of one partition: at most `most` open ones, each for `age` ms, and the
    `most_answered` that were answered last.

    Records of the last `redelivered` offsets may come again. What was forgotten since then is kept
    for them, so that they are told what they were told the first time.
    """

    def __init__(self, *, most: int, most_answered: int, redelivered: int, age: int) -> None:
        self._most = most
        self._most_answered = most_answered
        self._redelivered = redelivered
        self._age = age
        # Each in the order in which its entries go: by the offsets of their requests, and of the
        # results that matched.
        self._open: OrderedDict[Identity, Entry] = OrderedDict()
        self._answered: OrderedDict[Identity, Entry] = OrderedDict()
        self._forgotten: OrderedDict[Identity, Forgotten] = OrderedDict()
        self._in_order = True

    def __len__(self) -> int:
        """All that are kept, also those that are forgotten."""
        return len(self._open) + len(self._answered) + len(self._forgotten)

    def restore(self, change: Change) -> None:
        """Take over one change of the changelog, before any request or result: the last of each
        key, in any order. Ignores what it can't read. The bounds hold again with the next request
        and the next match, which tell the changelog what is deleted."""
        try:
            identity = _shared_source(msgspec.json.decode(change.key, type=Identity))
            value = change.value
            entry = None if value is None else msgspec.json.decode(value, type=Entry)
        except msgspec.DecodeError:
            return
        self._open.pop(identity, None)
        self._answered.pop(identity, None)
        self._in_order = False
        if entry is not None:
            held = self._open if entry.answered_at is None else self._answered
            question = _shared_question(entry.question)
            held[identity] = Entry(question, entry.asked, entry.answered_at, entry.digest)

    def ask(self, identity: Identity, question: Question, moment: Moment) -> tuple[Change, ...]:
        """Remember a request. One that is still known is not replaced by one of the same id."""
        if self._known(identity, moment) is not None:
            return ()
        # Its key is written anew: a deletion that is still due would delete this request.
        self._forgotten.pop(identity, None)
        deleted = self._make_room(moment)
        entry = Entry(_shared_question(question), moment)
        self._open[_shared_source(identity)] = entry
        return (*deleted, _written(identity, entry))

    def answer(self, request: Identity, reply: Reply, moment: Moment) -> Match:
        """Classify a result. Only a match consumes the request."""
        known = self._known(request, moment)
        if known is None or known.asked.offset > moment.offset:
            return Match("orphan", None)
        question = known.question
        asked = (question.session, question.server, question.mode)
        if asked != (reply.session, reply.server, reply.mode):
            return Match("mismatched", None)
        if known.answered_at == moment.offset:
            return Match("matched", question, (_written(request, known),))
        if known.answered_at is not None:
            same = known.digest == reply.digest
            return Match("duplicate" if same else "conflicting", question)
        if moment.timestamp - known.asked.timestamp > self._age:
            return Match("late", question)
        entry = Entry(question, known.asked, moment.offset, reply.digest)
        del self._open[request]
        self._answered[_shared_source(request)] = entry
        return Match("matched", question, (_written(request, entry), *self._forget(moment)))

    def _known(self, identity: Identity, moment: Moment) -> Entry | None:
        if not self._in_order:
            self._put_in_order()
        entry = self._open.get(identity) or self._answered.get(identity)
        if entry is not None:
            return entry
        forgotten = self._forgotten.get(identity)
        return forgotten.entry if forgotten and moment.offset < forgotten.since else None

    def _make_room(self, now: Moment) -> list[Change]:
        """Delete what is too old to matter, and the oldest open request if there are too many."""
        limit = now.timestamp - self._age * _FORGOTTEN_AFTER
        deleted: list[Change] = []
        while self._open:
            if len(self._open) < self._most and _first(self._open).asked.timestamp >= limit:
                break
            deleted.append(_delete_first(self._open))
        while self._forgotten and _first(self._forgotten).entry.asked.timestamp < limit:
            deleted.append(_delete_first(self._forgotten))
        # In the order of the answers: a restore finds out from the later ones which are forgotten.
        while self._answered and not self._forgotten:
            if _first(self._answered).asked.timestamp >= limit:
                break
            deleted.append(_delete_first(self._answered))
        return deleted

    def _forget(self, now: Moment) -> list[Change]:
        """Forget what was answered first, and delete what no record can ask for again."""
        while len(self._answered) > self._most_answered:
            identity, entry = self._answered.popitem(last=False)
            self._forgotten[identity] = Forgotten(entry, now.offset)
        deleted: list[Change] = []
        while self._forgotten:
            if _first(self._forgotten).since > now.offset - self._redelivered:
                break
            deleted.append(_delete_first(self._forgotten))
        return deleted

    def _put_in_order(self) -> None:
        """After a restore: a request was forgotten when as many as are known had been answered
        after it."""
        self._open = OrderedDict(sorted(self._open.items(), key=lambda item: item[1].asked.offset))
        answered = sorted(self._answered.items(), key=lambda item: item[1].answered_at or 0)
        later = [entry.answered_at or 0 for _, entry in answered[self._most_answered :]]
        self._forgotten = OrderedDict(
            (identity, Forgotten(entry, since))
            for (identity, entry), since in zip(answered, later, strict=False)
        )
        self._answered = OrderedDict(answered[len(later) :])
        self._in_order = True


_encode: Final = msgspec.json.Encoder().encode


def _written(identity: Identity, entry: Entry) -> Change:
    return Change(_encode(identity), _encode(entry))


def _first(held: OrderedDict[Identity, _Held]) -> _Held:
    return next(iter(held.values()))


def _delete_first(held: OrderedDict[Identity, _Held]) -> Change:
    identity, _ = held.popitem(last=False)
    return Change(_encode(identity), None)


def _shared_source(identity: Identity) -> Identity:
    return Identity(intern(identity.source), identity.id)


def _shared_question(asked: Question) -> Question:
    """The question with what many have in common held once: servers ask the same forms again."""
    session, form = asked.session, asked.form
    return Question(
        session and intern(session),
        intern(asked.server),
        intern(asked.mode),
        asked.time,
        form and shared_form(form),
    )
