"""The rules of AEP that no single event can break (AEP-0001 §7, AEP-0002 §2 and §7, AEP-0004 §3).

A redelivery, the same source, id and content as before, breaks none of them and changes nothing.
Each rule needs what came before as evidence: whoever starts in the middle of a stream, or has
forgotten the oldest, misses breaches and invents none. Only a redelivery of what is forgotten is
taken for a late event.

| rule | broken by |
|---|---|
| `id` | another content under the same source and id |
| `epoch`, `seq` | an epoch that falls; within an epoch, a `seq` that doesn't rise |
| `run_terminal` | a second terminal of one run of a session, in whatever epoch |
| `session_terminal` | a second `session.ended` |
| `attention_open` | a `session.ended` while a request for attention has no terminal |
| `attention_terminal` | a second terminal (`resolved`, `timeout`) of one request |
| `attention_order` | a request after the end of its session, or after its own terminal |
| `ack` | a second decision of one source on one command |
| `subject` | an event about a request, without the `subject` that names it |
| `answer` | an answer that its agent had to reject |

A session is that of its source; two sources that share its name have two. The rules on a second
terminal of a request, and on order, follow from terminal exclusivity (AEP-0002 §2) and from the
terminal coming before the end (§7.2). A request itself needs no `subject` (AEP-0003 §9.2).
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final, Generic, Literal, TypeVar, get_args

import orjson
from msgspec import Struct

from hookbus.codecs.aep_attention import ANSWERED, REQUESTED, RESPOND
from hookbus.codecs.event import Event

Rule = Literal[
    "id",
    "epoch",
    "seq",
    "run_terminal",
    "session_terminal",
    "attention_open",
    "attention_terminal",
    "attention_order",
    "ack",
    "subject",
    "answer",
]
RULES: Final[tuple[Rule, ...]] = get_args(Rule)

_RUN_TERMINALS: Final = frozenset(("run.finished", "run.failed", "run.cancelled"))
_ATTENTION_TERMINALS: Final = frozenset(("attention.resolved", "attention.timeout"))
_ABOUT_A_REQUEST: Final = _ATTENTION_TERMINALS | {ANSWERED, RESPOND, "attention.routed"}
_ACKS: Final = frozenset(("control.accepted", "control.rejected"))

_Value = TypeVar("_Value")


class Violation(Struct, frozen=True):
    """A rule that a stream breaks with an event; `path` is the JSON Pointer of the member that
    shows it."""

    rule: Rule
    path: str


class _Recent(Generic[_Value]):
    """The last `most` keys that were put, with their values."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[bytes, _Value] = OrderedDict()

    def get(self, key: bytes) -> _Value | None:
        return self._values.get(key)

    def __contains__(self, key: bytes) -> bool:
        return key in self._values

    def put(self, key: bytes, value: _Value) -> _Value | None:
        """Returns the value that had to go for it."""
        self._values[key] = value
        self._values.move_to_end(key)
        return self._values.popitem(last=False)[1] if len(self._values) > self._most else None


class _Session:
    __slots__ = ("ended", "open", "position")

    def __init__(self) -> None:
        self.position = (-1, -1)
        self.ended = False
        self.open: set[bytes] = set()


class Streams:
    """What is remembered of the streams seen: at most `most` of each of events, sessions, requests,
    terminals and acks. Keys are kept as digests, so memory is bounded in bytes too."""

    def __init__(self, most: int) -> None:
        self._contents = _Recent[bytes](most)
        self._sessions = _Recent[_Session](most)
        self._asked = _Recent[tuple[_Session, bytes]](most)
        self._closed = _Recent[None](most)
        self._runs = _Recent[None](most)
        self._acks = _Recent[None](most)

    def see(self, event: Event, *, refuted: bool = False) -> Violation | None:
        """The first rule that the next event of the input breaks; AHP events break none. `refuted`
        says that it is an answer which its agent had to reject."""
        if event.protocol != "aep":
            return None
        identity, content = _key(event.source, event.id), _digest(event.tree)
        known = self._contents.get(identity)
        if known is not None:
            return None if known == content else Violation("id", "/id")
        self._contents.put(identity, content)
        found = list(self._broken(event))
        if refuted:
            found.append(Violation("answer", "/data/answer"))
        return found[0] if found else None

    def _broken(self, event: Event) -> Iterator[Violation]:
        if event.session is None:
            return
        session = self._session(_key(event.source, event.session))
        if event.type in _ABOUT_A_REQUEST and "subject" not in event.tree:
            yield Violation("subject", "")
        yield from _moved(session, event.tree)
        yield from self._ended(session, event)
        yield from self._attended(session, event)
        if event.type in _ACKS and "cause" in event.tree:
            yield from _once(
                self._acks, _key(event.source, event.tree["cause"]), Violation("ack", "/cause")
            )

    def _session(self, key: bytes) -> _Session:
        known = self._sessions.get(key)
        session = _Session() if known is None else known
        self._sessions.put(key, session)
        return session

    def _ended(self, session: _Session, event: Event) -> Iterator[Violation]:
        if event.type in _RUN_TERMINALS and "run" in event.tree:
            run = _key(event.source, event.session, event.tree["run"])
            yield from _once(self._runs, run, Violation("run_terminal", "/run"))
        if event.type == "session.ended":
            if session.ended:
                yield Violation("session_terminal", "/session")
            if session.open:
                yield Violation("attention_open", "/session")
            session.ended = True

    def _attended(self, session: _Session, event: Event) -> Iterator[Violation]:
        if event.type == REQUESTED:
            request = _key(event.source, event.session, event.id)
            if session.ended or request in self._closed:
                yield Violation("attention_order", "/type")
            session.open.add(request)
            forgotten = self._asked.put(request, (session, request))
            if forgotten is not None:
                forgotten[0].open.discard(forgotten[1])
        elif event.type in _ATTENTION_TERMINALS and "subject" in event.tree:
            request = _key(event.source, event.session, event.tree["subject"])
            session.open.discard(request)
            yield from _once(self._closed, request, Violation("attention_terminal", "/subject"))


def _moved(session: _Session, tree: dict[str, Any]) -> Iterator[Violation]:
    """The position is (epoch, seq); a late one moves nothing."""
    if "seq" not in tree:
        return
    position = (tree.get("epoch", 0), tree["seq"])
    if position > session.position:
        session.position = position
    elif position[0] < session.position[0]:
        yield Violation("epoch", "/epoch")
    else:
        yield Violation("seq", "/seq")


def _once(seen: _Recent[None], key: bytes, violation: Violation) -> Iterator[Violation]:
    if key in seen:
        yield violation
    seen.put(key, None)


def _key(*names: str | None) -> bytes:
    return hashlib.blake2b(orjson.dumps(names), digest_size=16).digest()


def _digest(tree: dict[str, Any]) -> bytes:
    """Of the content, whatever the order of members and the blanks between them."""
    try:
        content = orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits
        content = json.dumps(tree, sort_keys=True).encode()
    return hashlib.blake2b(content, digest_size=16).digest()
