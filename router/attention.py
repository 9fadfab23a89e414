"""The correlate step for AEP: requests for attention and the answers to them (AEP-0002 §7).

An answer belongs to the request of the same source and session whose id is its `subject`. A
`control.attention.respond` comes from another source, as a rule in another partition, and is not
correlated: what its values mean is not known here.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import msgspec

from hookbus.codecs.aep_attention import (
    ANSWERED,
    REQUESTED,
    RESPOND,
    Attention,
    check_answer,
    read_attention,
)
from hookbus.codecs.event import Event
from hookbus.codecs.form import Form
from hookbus.policies.aep_values import gate_values
from hookbus.policies.correlation import (
    Identity,
    Match,
    Moment,
    PendingRequests,
    Question,
    Reply,
)
from hookbus.policies.form_extension import CONFORMING
from hookbus.router.finding import Finding, waited

_SERVER: Final = ""
_MODE: Final = "attention"
"""What stands in the place of an elicitation's server and mode; no elicitation has this mode."""
_REJECTED: Final = ("required", "enum")
"""The rules whose breach an agent must reject (AEP-0002 §5.3)."""


def examine_attention(event: Event, moment: Moment, pending: PendingRequests) -> Finding | None:
    """None for events of other types. A request is remembered in `pending`, and an answer that
    matches consumes one."""
    if event.type == REQUESTED:
        return _request(event, moment, pending)
    if event.type == ANSWERED:
        return _answer(event, moment, pending)
    if event.type == RESPOND:
        return Finding(kind="result", credentials=_credentials(event, None))
    return None


def _request(event: Event, moment: Moment, pending: PendingRequests) -> Finding:
    data = event.tree.get("data")
    asked = None if data is None else msgspec.json.encode(read_attention(data))
    question = Question(event.session, _SERVER, _MODE, event.time, asked)
    changes = pending.ask(Identity(event.source, event.id), question, moment)
    return Finding(kind="request", changes=changes)


def _answer(event: Event, moment: Moment, pending: PendingRequests) -> Finding:
    match = _match(event, moment, pending)
    asked = _asked(match)
    fault = None if asked is None else check_answer(asked, event)
    form = asked.form if asked is not None else None
    return Finding(
        kind="result",
        body=_body(asked, fault.code if fault is not None else CONFORMING, event),
        classification=match.classification,
        form=form,
        refutes=fault is not None and fault.rule in _REJECTED,
        credentials=_credentials(event, form),
        waited=waited(match, event.time),
        changes=match.changes,
    )


def _match(event: Event, moment: Moment, pending: PendingRequests) -> Match:
    subject = event.tree.get("subject")
    if subject is None:
        return Match("orphan", None)
    answer = json.dumps(event.tree.get("data", {}).get("answer"), sort_keys=True)
    digest = hashlib.sha256(answer.encode()).hexdigest()
    reply = Reply(event.session, _SERVER, _MODE, digest)
    return pending.answer(Identity(event.source, subject), reply, moment)


def _asked(match: Match) -> Attention | None:
    if match.question is None or match.question.form is None:
        return None
    return msgspec.json.decode(match.question.form, type=Attention)


def _body(asked: Attention | None, verdict: str, event: Event) -> str | None:
    """The verdict on an answer that is at hand, to a request that is."""
    return None if asked is None or "data" not in event.tree else verdict


def _credentials(event: Event, form: Form | None) -> int:
    answer: dict[str, Any] = event.tree.get("data", {}).get("answer", {})
    return gate_values(form, answer.get("values", {}), "redacted").credentials
