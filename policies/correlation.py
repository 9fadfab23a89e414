"""Which request an elicitation result answers (AHP, ELICITATION).

A result belongs to the pending request with the same `source`, whose id is its `parentEventId`, in
the same session, of the same server and mode. What is decided for a record is decided the same way
when the record comes again: every entry remembers the offsets of the records that made it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, Literal

import msgspec
from msgspec import Struct

Classification = Literal["matched", "orphan", "late", "duplicate", "conflicting", "mismatched"]

_FORGOTTEN_AFTER: Final = 2
"""Requests stay known for twice their age limit, so that a late result can be told from an orphan
and a second one from a first."""


class Identity(Struct, frozen=True, array_like=True):
    """An event is known by its source and id, never by its id alone."""

    source: str
    id: str


class Question(Struct, frozen=True):
    """What of a request its results must agree with, and what they are judged by."""

    session: str | None
    server: str
    mode: str
    time: str
    """The event's own, RFC 3339."""
    form: bytes | None = None
    """The form as the codec encodes it; None where its body is not at hand."""


class Reply(Struct, frozen=True):
    """What of a result its request must agree with; `digest` stands for the answer."""

    session: str | None
    server: str
    mode: str
    digest: str


class Moment(Struct, frozen=True):
    """Where and when a record was taken: its offset, and its timestamp in ms."""

    offset: int
    timestamp: int


class Entry(Struct, frozen=True):
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


class PendingRequests:
    """The requests of one partition, at most `most`, each open for `age` ms."""

    def __init__(self, *, most: int, age: int) -> None:
        self._most = most
        self._age = age
        self._entries: OrderedDict[Identity, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def restore(self, change: Change) -> None:
        """Take over one change of the changelog, in its order. Ignores what it can't read."""
        try:
            identity = msgspec.json.decode(change.key, type=Identity)
            if change.value is None:
                self._entries.pop(identity, None)
            else:
                self._entries[identity] = msgspec.json.decode(change.value, type=Entry)
        except msgspec.DecodeError:
            return

    def ask(self, identity: Identity, question: Question, moment: Moment) -> tuple[Change, ...]:
        """Remember a request. One that is still known is not replaced by one of the same id."""
        if identity in self._entries:
            return ()
        forgotten = tuple(self._forget(moment))
        return (*forgotten, self._keep(identity, Entry(question, moment)))

    def answer(self, request: Identity, reply: Reply, moment: Moment) -> Match:
        """Classify a result. Only a match consumes the request."""
        known = self._entries.get(request)
        if known is None or known.asked.offset > moment.offset:
            return Match("orphan", None)
        question = known.question
        asked = (question.session, question.server, question.mode)
        if asked != (reply.session, reply.server, reply.mode):
            return Match("mismatched", None)
        if known.answered_at is not None and known.answered_at != moment.offset:
            same = known.digest == reply.digest
            return Match("duplicate" if same else "conflicting", question)
        if known.answered_at is None and moment.timestamp - known.asked.timestamp > self._age:
            return Match("late", question)
        entry = msgspec.structs.replace(known, answered_at=moment.offset, digest=reply.digest)
        return Match("matched", question, (self._keep(request, entry),))

    def _keep(self, identity: Identity, entry: Entry) -> Change:
        self._entries[identity] = entry
        return Change(msgspec.json.encode(identity), msgspec.json.encode(entry))

    def _forget(self, now: Moment) -> Iterator[Change]:
        """Make room: what is too old to matter, and the oldest beyond the bound."""
        limit = now.timestamp - self._age * _FORGOTTEN_AFTER
        while self._entries:
            identity, oldest = next(iter(self._entries.items()))
            if len(self._entries) < self._most and oldest.asked.timestamp >= limit:
                return
            del self._entries[identity]
            yield Change(msgspec.json.encode(identity), None)
