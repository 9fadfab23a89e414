"""The correlate step: what is known of an elicitation, its body and the request that it answers."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, Final

import msgspec

from hookbus.codecs.aep_attention import ANSWERED, REQUESTED
from hookbus.codecs.answers import check_answers
from hookbus.codecs.elicitation import Answer, Bodies, BodyFault
from hookbus.codecs.elicitation_event import (
    ASKED,
    TOLD,
    ElicitationEvent,
    body_pointer,
    read_elicitation,
)
from hookbus.codecs.event import Event
from hookbus.codecs.form import Form
from hookbus.policies.capture import FormNote
from hookbus.policies.correlation import (
    Change,
    Classification,
    Identity,
    Match,
    Moment,
    PendingRequests,
    Question,
    Reply,
)
from hookbus.policies.form_extension import CONFORMING, carried_extension, form_extension
from hookbus.policies.forms import structural_values
from hookbus.router.attention import examine_attention
from hookbus.router.finding import Finding, waited

CORRELATED: Final = frozenset((ASKED, TOLD, REQUESTED, ANSWERED))
"""The types of events that there is anything to find out about."""


class Correlator:
    """Examines elicitations (AHP) and attention (AEP); the pending requests of the partition are
    passed in."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies

    def examine(self, event: Event, moment: Moment, pending: PendingRequests) -> Finding | None:
        """None for events of other types. A request is remembered in `pending`, and a result
        that matches consumes one."""
        if event.protocol == "aep":
            return examine_attention(event, moment, pending)
        elicitation = read_elicitation(event)
        if elicitation is None:
            return None
        if elicitation.kind == "request":
            return self._request(event, elicitation, moment, pending)
        return self._result(event, elicitation, moment, pending)

    def _request(
        self, event: Event, asked: ElicitationEvent, moment: Moment, pending: PendingRequests
    ) -> Finding:
        judged = None
        if asked.text is not None:
            judged = self._bodies.request(asked.text, asked.mode)
        form = judged if isinstance(judged, Form) else None
        question = Question(
            asked.session,
            asked.server,
            asked.mode,
            asked.time,
            _remembered(form) if form is not None else None,
        )
        changes = pending.ask(Identity(asked.source, asked.id), question, moment)
        if judged is None:
            return _carried(event, asked, changes=changes)
        body = _body(judged)
        extension = form_extension(form, body, None, None)
        return Finding(
            kind="request", body=body, note=_note(asked, extension, body, form), changes=changes
        )

    def _result(
        self, event: Event, told: ElicitationEvent, moment: Moment, pending: PendingRequests
    ) -> Finding:
        match = _match(told, moment, pending)
        seconds = waited(match, told.time)
        if told.text is None or told.action is None:
            return _carried(
                event,
                told,
                classification=match.classification,
                waited=seconds,
                changes=match.changes,
            )
        judged = self._bodies.result(told.text, told.mode, told.action)
        form = _form(match)
        content = judged.content if isinstance(judged, Answer) else None
        fault = judged if isinstance(judged, BodyFault) else None
        if fault is None and form is not None and told.action == "accept":
            fault = check_answers(form, content)
        values = structural_values(form, content)
        body = _body(fault or judged)
        extension = form_extension(
            form, body, values if content is not None else None, match.classification
        )
        return Finding(
            kind="result",
            body=body,
            classification=match.classification,
            note=_note(told, extension, body, form),
            credentials=values.credentials,
            unshared=body == "body_content",
            waited=seconds,
            changes=match.changes,
        )


def _match(told: ElicitationEvent, moment: Moment, pending: PendingRequests) -> Match:
    if told.parent is None:
        return Match("orphan", None)
    answer = f"{told.action}\0{told.text}".encode("utf-8", "surrogatepass")
    reply = Reply(told.session, told.server, told.mode, hashlib.sha256(answer).hexdigest())
    return pending.answer(Identity(told.source, told.parent), reply, moment)


def _carried(
    event: Event,
    elicitation: ElicitationEvent,
    *,
    classification: Classification | None = None,
    waited: float | None = None,
    changes: tuple[Change, ...] = (),
) -> Finding:
    """Without its body, an elicitation tells what a copy of it already told."""
    extension = carried_extension(event.tree)
    if classification is not None:
        extension = {**(extension or {})}
        extension.setdefault("result", classification)
    return Finding(
        kind=elicitation.kind,
        body=extension.get("body") if extension else None,
        classification=extension.get("result") if extension else None,
        note=FormNote(extension),
        waited=waited,
        changes=changes,
    )


def _note(
    elicitation: ElicitationEvent, extension: dict[str, Any] | None, body: str, form: Form | None
) -> FormNote:
    fault = None if body == CONFORMING else body
    return FormNote(extension, fault, body_pointer(elicitation.kind), form)


def _body(judged: object) -> str:
    return judged.code if isinstance(judged, BodyFault) else CONFORMING


def _form(match: Match) -> Form | None:
    if match.question is None or match.question.form is None:
        return None
    told = match.question.form
    return _recalled(told) if len(told) <= _LONGEST_RECALLED else _decoded(told)


def _remembered(form: Form) -> bytes:
    """Without what it says to the person: no answer is judged by that."""
    return msgspec.json.encode(Form("", form.fields, form.also_required))


def _decoded(form: bytes) -> Form:
    return msgspec.json.decode(form, type=Form)


_recalled: Final = lru_cache(512)(_decoded)  # servers ask the same forms again
_LONGEST_RECALLED: Final = 8192
