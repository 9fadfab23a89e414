"""AHP content selection: how much of each content part a subscriber asked for (AHP,
content-selection).

A selection names a choice for each category of content and a `default` for the rest. It only
lowers: what it would raise stays as it is, and it authorizes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from hookbus.policies.parts import size_of

Choice = Literal["omit", "metadata", "body"]

CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)
"""From the least to the most."""

DEFAULT: Final = "default"

_RANK: Final[Mapping[str, int]] = {choice: rank for rank, choice in enumerate(CHOICES)}
_MEDIA: Final = (("image/", "images"), ("audio/", "audio"), ("video/", "video"))
_CONTENT: Final = ("text", "body", "gap")


class Selection(Struct, frozen=True):
    """A choice for every category: `categories` holds the explicit ones, sorted by name, so that
    equal selections are equal and hashable whatever the order in which they were written."""

    default: Choice
    categories: tuple[tuple[str, Choice], ...] = ()

    @classmethod
    def of(cls, configured: Mapping[str, Choice]) -> Selection:
        """From the object of a configuration or a registration. Raises ValueError if it has
        `problems`."""
        for problem in problems(configured):
            raise ValueError(problem)
        explicit = {name: choice for name, choice in configured.items() if name != DEFAULT}
        return cls(configured[DEFAULT], tuple(sorted(explicit.items())))

    def choice(self, category: str) -> Choice:
        """An explicit category wins over the default."""
        for name, choice in self.categories:
            if name == category:
                return choice
        return self.default


def problems(configured: Any) -> Iterator[str]:
    """What is wrong with a selection as it is configured; any category is allowed. Names members,
    and quotes no value."""
    if not isinstance(configured, Mapping):
        yield "a selection is an object"
        return
    if DEFAULT not in configured:
        yield "default: missing; it says what is selected of the categories that are not named"
    for name, choice in configured.items():
        if not isinstance(choice, str) or choice not in _RANK:
            yield f"{name}: must be one of body, metadata, omit"


def category_of(part: Mapping[str, Any]) -> str:
    """The category of a valid part: its own (such as `reasoning`), or else that of its kind and
    media type. Media types are compared as they are spelled, as the official projection does."""
    return category_in(part.get("category"), part["kind"], part["mediaType"])


def category_in(category: str | None, kind: str, media_type: str) -> str:
    """The same, of a part that is known by these members."""
    if category is not None:
        return category
    if kind == "text":
        return "text"
    for prefix, named in _MEDIA:
        if media_type.startswith(prefix):
            return named
    return "files"


def lowers(chosen: Choice, held: str) -> bool:
    """Whether a choice takes anything away from a part of this selection."""
    return _RANK[chosen] < _RANK[held]


def view(selection: Selection, part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part (AHP content-item, valid) as this selection shows it: the part itself if that takes
    nothing away, otherwise a copy that is lowered.

    A lowered part has no text, body or gap. It keeps a size and a hash that it had; at `metadata`
    the size in UTF-8 bytes of a text is measured, and nothing is hashed. Valid for any receiver.
    """
    chosen = selection.choice(category_of(part))
    if not lowers(chosen, part["selection"]):
        return part
    lowered = {name: value for name, value in part.items() if name not in _CONTENT}
    lowered["selection"] = chosen
    if chosen == "metadata" and "text" in part:
        lowered["size"] = size_of(part)
    return lowered
