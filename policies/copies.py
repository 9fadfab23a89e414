"""The copies that routes may have of one event, whatever its protocol."""

from __future__ import annotations

from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from hookbus.codecs.event import Event
from hookbus.codecs.event import Protocol as EventProtocol
from hookbus.codecs.form import Form
from hookbus.codecs.strict import encode
from hookbus.policies.aep_capture import AepRewriter, grant_hop, level_of, without_digests
from hookbus.policies.capture import FormNote, Rewriter, View
from hookbus.policies.levels import Grant, Level, declared, grant, held
from hookbus.policies.redaction.contract import Redacts
from hookbus.policies.struct_capture import Cut, StructRewriter

Claim = Literal["malformed", "exceeded"]
"""What is wrong with the level that an event declares: an AHP declaration that can't be read and is
ignored, or AEP data above the level, which are cut down to it."""


_REDACTED: Final = Grant("redacted", rewrite=True, redact=True)
UNREDACTED: Final = grant("full", "metadata")
"""What a route gets instead where the redaction pipeline fails."""


def granted(protocol: EventProtocol, level: Level, ceiling: Level, *, redact: bool) -> Grant:
    """What a route with this ceiling may have of an event at this level; with `redact`, one that
    runs the redaction pipeline."""
    if protocol == "ahp":
        return grant(level, ceiling, redact=redact)
    if redact and level == "full" and ceiling == "redacted":
        return _REDACTED
    return grant_hop(level, ceiling)


class Context(Struct, frozen=True):
    """What is known of an event from outside: the level that its ingress holds (AHP), what was
    found out about an elicitation's body (AHP), and the form that an answer answers (AEP)."""

    ingress: Level = "full"
    note: FormNote | None = None
    form: Form | None = None


class Copies(Protocol):
    """The copies of one event."""

    @property
    def level(self) -> Level:
        """The level of the event itself."""
        ...

    @property
    def claim(self) -> Claim | None: ...

    @property
    def spoilt(self) -> bool:
        """Whether the redaction pipeline failed on this event."""
        ...

    def grant(self, ceiling: Level, *, redact: bool = False) -> Grant:
        """What a route with this ceiling may have; with `redact`, one that runs the redaction
        pipeline. If that fails on this event, what it may have is the metadata copy."""
        ...

    def redacts(self, granted: Grant) -> bool:
        """Whether the redaction pipeline goes through that this grant asks for."""
        ...

    def copy(self, granted: Grant, view: View) -> dict[str, Any] | None:
        """That copy; None if it is the event byte for byte. Shares with the event and with other
        copies what is the same."""
        ...

    def encoded(self, granted: Grant, view: View) -> bytes | None:
        """The same copy as JSON; its members may stand in another order."""
        ...


class Copier(Struct, frozen=True):
    """Makes the copies of events of either protocol."""

    ahp: Rewriter
    structs: StructRewriter
    aep: AepRewriter
    redactor: Redacts | None = None

    def of(self, event: Event, context: Context) -> Copies:
        """The copies of one event."""
        if event.protocol == "aep":
            return _AepCopies(self.aep, event.tree, context.form, self.redactor)
        return _AhpCopies(self, event, context)


class _AhpCopies:
    __slots__ = ("_cuts", "_event", "_gated", "_note", "_of", "claim", "level", "spoilt")

    def __init__(self, copier: Copier, event: Event, context: Context) -> None:
        self._of = copier
        self._event = event
        self._note = context.note
        self.level: Level = context.ingress
        self.claim: Claim | None = None
        if "extensions" in event.tree:
            declaration = declared(event.tree)
            self.level = held(context.ingress, declaration)
            self.claim = "malformed" if declaration == "malformed" else None
        self._gated: dict[Grant, dict[str, Any]] = {}
        self._cuts: dict[Level, Cut] = {}
        self.spoilt = False

    def grant(self, ceiling: Level, *, redact: bool = False) -> Grant:
        return _granted(self, "ahp", ceiling, redact)

    def redacts(self, granted: Grant) -> bool:
        if granted not in self._gated and not self.spoilt:
            try:
                self._gated[granted] = self._gate(granted)
            except Exception:  # noqa: BLE001 - fails closed, whatever a redactor raises
                self.spoilt = True
        return not self.spoilt

    def copy(self, granted: Grant, view: View) -> dict[str, Any] | None:
        if view.whole and not granted.rewrite:
            return None
        gated = self._gated.get(granted)
        if gated is None:
            gated = self._gated[granted] = self._gate(granted)
        return self._of.ahp.show(gated, view)

    def _gate(self, granted: Grant) -> dict[str, Any]:
        return self._of.ahp.gate(self._event.tree, granted, self._note)

    def encoded(self, granted: Grant, view: View) -> bytes | None:
        level = granted.level
        if level == "full" or level == "redacted" or self._event.struct is None:
            return _encoded(self.copy(granted, view))
        cut = self._cuts.get(level)
        if cut is None:
            event = self._event
            cut = self._cuts[level] = self._of.structs.cut(
                event.struct, event.tree, level, self._note
            )
        return cut.encoded(view.selection)


class _AepCopies:
    def __init__(
        self,
        rewriter: AepRewriter,
        event: dict[str, Any],
        form: Form | None,
        redactor: Redacts | None,
    ) -> None:
        self._rewriter = rewriter
        self._redactor = redactor
        self._redacted: dict[str, Any] | None = None
        self._event = event
        self._form = form
        self.level: Level = level_of(event)
        admitted = rewriter.admit(event, form)
        self._admitted = admitted.tree
        self.claim: Claim | None = "exceeded" if admitted.exceeded else None
        self.spoilt = False

    def grant(self, ceiling: Level, *, redact: bool = False) -> Grant:
        return _granted(self, "aep", ceiling, redact)

    def redacts(self, granted: Grant) -> bool:
        if self._redacted is None and not self.spoilt:
            try:
                self._redacted = self._redact()
            except Exception:  # noqa: BLE001 - fails closed, whatever a redactor raises
                self.spoilt = True
        return not self.spoilt

    def _redact(self) -> dict[str, Any]:
        if self._redactor is None:
            raise ValueError("no redactor")
        made = self._rewriter.lower(self._admitted, "redacted", self._form)
        if "data" in made:
            made = {**made, "data": self._redactor.value(made["data"])}
        return made

    def copy(self, granted: Grant, view: View) -> dict[str, Any] | None:
        made = self._admitted
        if granted.redact and self._redacted is not None:
            made = self._redacted
        elif granted.rewrite:
            made = self._rewriter.lower(made, granted.level, self._form)
        if not view.digests:
            made = without_digests(made)
        return None if made is self._event else made

    def encoded(self, granted: Grant, view: View) -> bytes | None:
        return _encoded(self.copy(granted, view))


def _granted(copies: Copies, protocol: EventProtocol, ceiling: Level, redact: bool) -> Grant:
    wanted = granted(protocol, copies.level, ceiling, redact=redact)
    return wanted if not wanted.redact or copies.redacts(wanted) else UNREDACTED


def _encoded(copy: dict[str, Any] | None) -> bytes | None:
    return None if copy is None else encode(copy)
