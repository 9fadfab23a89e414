"""What AEP asks of people and what they answer (AEP-0002 §5.2 and §5.3, AEP-0006, AEP-0008)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from hookbus.codecs.answers import check_answers
from hookbus.codecs.credentials import asks_credential
from hookbus.codecs.elicitation import BodyFault
from hookbus.codecs.event import Event
from hookbus.codecs.form import Choice, Field, Form

REQUESTED: Final = "attention.requested"
ANSWERED: Final = "attention.answered"
RESPOND: Final = "control.attention.respond"

_ANSWER: Final = "/data/answer"


class Attention(Struct, frozen=True):
    """What a request asks: a form, or for one of the options. Its prompt is not kept, nor are the
    labels of its fields and choices; those of its options are, to read texts by (AEP-0008)."""

    kind: str
    form: Form | None = None
    options: tuple[Choice, ...] = ()

    def option_of(self, text: str) -> str | None:
        """The id of the option that a text chooses (AEP-0008): it equals an id, or the label of
        exactly one option, regardless of case and of blanks around it."""
        said = text.strip().casefold()
        for option in self.options:
            if option.id.strip().casefold() == said:
                return option.id
        labelled = [o.id for o in self.options if o.label.strip().casefold() == said]
        return labelled[0] if len(labelled) == 1 else None


def read_attention(data: Mapping[str, Any]) -> Attention:
    """From the data of a valid `attention.requested`."""
    fields = data.get("fields")
    return Attention(
        data["kind"],
        None if fields is None else Form("", tuple(map(_field, fields))),
        tuple(Choice(option["id"], option["label"]) for option in data.get("options", ())),
    )


def _field(spec: Mapping[str, Any]) -> Field:
    kind = spec["type"]
    number = kind == "number"
    return Field(
        id=spec["id"],
        type=kind,
        required=spec.get("required", False),
        asks_credential=asks_credential(spec["id"], spec["label"], number=number),
        multi=spec.get("multi", False),
        other=spec.get("other", False),
        listed_by="enum" if kind == "select" else None,
        choices=tuple(Choice(each["id"], each["id"]) for each in spec.get("choices", ())),
        min=spec.get("min") if number else None,
        max=spec.get("max") if number else None,
    )


def check_answer(asked: Attention, event: Event) -> BodyFault | None:
    """The first fault (`body_answer`) of an answer to a request; None if it satisfies it. The path
    is one in the event, and ends at a key of the form that was asked.

    - `values` hold an answer of its type and within its bounds for each field, ids of choices
      unless the field takes `other`, the required ones, and no other keys;
    - `option` is one of those that were offered;
    - a text without an option, in answer to a question of permission, chooses one (AEP-0008): what
      doesn't is never consent.

    What the event's level takes away is not missed: below `full` no field that asks for a
    credential is required, at `metadata` only numbers and booleans are, at `none` nothing is.
    """
    level: str = event.tree.get("capture", "metadata")
    if level == "none":
        return None
    answer: Mapping[str, Any] = event.tree.get("data", {}).get("answer", {})
    fault = None
    if asked.form is not None:
        fault = _check_values(asked.form, answer.get("values", {}), level)
    return fault or _check_option(asked, answer)


def _check_option(asked: Attention, answer: Mapping[str, Any]) -> BodyFault | None:
    offered = {option.id for option in asked.options}
    if not offered:
        return None
    if "option" in answer:
        right = answer["option"] in offered
    else:
        unclear = asked.kind == "permission" and "text" in answer
        right = not unclear or asked.option_of(answer["text"]) is not None
    return None if right else BodyFault("body_answer", f"{_ANSWER}/option", "enum")


def _check_values(form: Form, values: Mapping[str, Any], level: str) -> BodyFault | None:
    fields = form.fields
    if level != "full":
        fields = tuple(replace(field, required=_is_due(field, level)) for field in fields)
    fault = check_answers(Form(form.message, fields), values)
    if fault is not None:
        path = f"{_ANSWER}/values{(fault.path or '').removeprefix('/content')}"
        return BodyFault(fault.code, path, fault.rule)
    if values.keys() - {field.id for field in fields}:
        return BodyFault("body_answer", f"{_ANSWER}/values", "additionalProperties")
    return None


def _is_due(field: Field, level: str) -> bool:
    """Whether a copy below full holds the answer to a required field."""
    structural = field.type in ("number", "boolean")
    return field.required and not field.asks_credential and (structural or level == "redacted")
