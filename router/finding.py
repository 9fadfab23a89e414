"""What the correlate step finds out about one event."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from hookbus.codecs.form import Form
from hookbus.policies.capture import FormNote
from hookbus.policies.correlation import Change, Classification, Match


class Finding(Struct, frozen=True, kw_only=True):
    """What was found out about one elicitation (AHP), or about one request for attention or answer
    to it (AEP)."""

    kind: Literal["request", "result"]
    body: str | None = None
    """`conforming`, a code, or None where the body is not at hand."""
    classification: Classification | None = None
    """A result's."""
    note: FormNote | None = None
    """AHP: what copies say of the form."""
    form: Form | None = None
    """AEP: the form that an answer answers, where it is at hand."""
    refutes: bool = False
    """AEP: whether the answer is one that its agent had to reject (AEP-0002 §5.3)."""
    credentials: int = 0
    """Answers that are in no copy below full, because their fields ask for a credential."""
    unshared: bool = False
    """Content that came with decline, cancel or url mode: nobody agreed to share it."""
    waited: float | None = None
    """Seconds from the question to its answer, by the events' own times."""
    changes: tuple[Change, ...] = ()


def waited(match: Match, answered: str) -> float | None:
    """Seconds from a question to the time of its answer. May be negative where clocks differ; None
    if nobody waited, or a time can't be told."""
    if match.classification != "matched" or match.question is None:
        return None
    try:
        asked = datetime.fromisoformat(match.question.time)
        return (datetime.fromisoformat(answered) - asked).total_seconds()
    except (ValueError, TypeError):  # such as a leap second, which datetime doesn't know
        return None
