"""What of a content part a subscriber selected."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from agenthooksprotocol._content import project_content
from agenthooksprotocol.runtime import Validator
from hypothesis import given
from hypothesis import strategies as st

from hookbus.policies.selection import (
    CHOICES,
    Choice,
    Selection,
    category_of,
    problems,
    view,
)

OFFICIAL = Validator()

_MEDIA_TYPES = (
    *("image/png", "image/svg+xml", "audio/wav", "video/mp4", "application/pdf", "model/gltf"),
    *("IMAGE/PNG", "image", "images/x", "application/xml", "audio/", "x"),
)
_CATEGORIES = ("text", "reasoning", "images", "audio", "video", "files", "skills", "default", "x")
_HASH = "0f" * 32


@st.composite
def parts(draw: st.DrawFn) -> dict[str, Any]:
    """Valid parts of every kind, selection and form."""
    kind = draw(st.sampled_from(("text", "attachment")))
    media = st.just("text/plain") if kind == "text" else st.sampled_from(_MEDIA_TYPES)
    chosen = draw(st.sampled_from(CHOICES))
    part: dict[str, Any] = {"id": "p", "kind": kind, "mediaType": draw(media), "selection": chosen}
    if draw(st.booleans()):
        part["category"] = draw(st.sampled_from(_CATEGORIES))
    if draw(st.booleans()):
        part["synthesized"] = draw(st.booleans())
    gap = chosen == "body" and draw(st.booleans())
    if gap:
        part["gap"] = {"reason": "too large"}
    elif chosen == "body":
        what = {"text": {"text": draw(st.text())}, "attachment": {"body": {"ref": "urn:x"}}}
        part.update(what[kind])
    if gap or chosen != "body":
        part.update(draw(st.sampled_from(({}, {"size": 7}, {"size": 7.0, "sha256": _HASH}))))
    return part


choices = st.sampled_from(CHOICES)
configured = st.builds(
    lambda default, categories: {**categories, "default": default},
    choices,
    st.dictionaries(st.sampled_from(_CATEGORIES[:7]), choices),
)
selections = configured.map(Selection.of)


def shown(selection: Selection, part: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy(part)
    lowered = dict(view(selection, part))
    assert part == before
    return lowered


@given(configured, parts())
def test_a_view_is_the_official_projection_and_the_size_of_a_text(
    selection: dict[str, Choice], part: dict[str, Any]
) -> None:
    expected = project_content(part, selection, include_native=True)
    if expected["selection"] == "metadata" and "text" in part:
        expected["size"] = len(part["text"].encode())
    assert shown(Selection.of(selection), part) == expected


@given(selections, parts())
def test_the_official_validator_accepts_every_view(
    selection: Selection, part: dict[str, Any]
) -> None:
    OFFICIAL.validate("content-item", part)
    OFFICIAL.validate("content-item", shown(selection, part))


@given(selections, parts())
def test_a_view_of_a_view_changes_nothing(selection: Selection, part: dict[str, Any]) -> None:
    once = view(selection, part)
    assert view(selection, once) is once


@given(selections, selections, parts())
def test_a_view_never_raises_and_the_lowest_of_several_decides_in_any_order(
    one: Selection, other: Selection, part: dict[str, Any]
) -> None:
    there, back = shown(other, shown(one, part)), shown(one, shown(other, part))
    rank = CHOICES.index
    lowest = min(
        (part["selection"], one.choice(category_of(part)), other.choice(category_of(part))),
        key=rank,
    )
    assert there["selection"] == back["selection"] == lowest
    # the size of a text is there if it came through metadata, which measures it
    there.pop("size", None)
    back.pop("size", None)
    assert there == back


@given(selections, parts())
def test_a_part_that_keeps_its_selection_is_the_part_itself(
    selection: Selection, part: dict[str, Any]
) -> None:
    same = shown(selection, part)["selection"] == part["selection"]
    assert (view(selection, part) is part) == same


@pytest.mark.parametrize(
    ("part", "category"),
    [
        ({"kind": "text", "mediaType": "text/plain"}, "text"),
        ({"kind": "text", "mediaType": "text/plain", "category": "reasoning"}, "reasoning"),
        ({"kind": "attachment", "mediaType": "image/png"}, "images"),
        ({"kind": "attachment", "mediaType": "audio/wav"}, "audio"),
        ({"kind": "attachment", "mediaType": "video/mp4"}, "video"),
        ({"kind": "attachment", "mediaType": "application/pdf"}, "files"),
        ({"kind": "attachment", "mediaType": "image/png", "category": "screens"}, "screens"),
    ],
)
def test_a_part_has_the_category_of_its_own_or_of_its_media(
    part: dict[str, Any], category: str
) -> None:
    assert category_of(part) == category


def test_an_explicit_category_wins_over_the_default() -> None:
    selection = Selection.of({"default": "omit", "reasoning": "body"})
    assert (selection.choice("reasoning"), selection.choice("text")) == ("body", "omit")


def test_the_order_of_categories_makes_no_other_selection() -> None:
    one = Selection.of({"default": "omit", "a": "body", "b": "metadata"})
    other = Selection.of({"b": "metadata", "a": "body", "default": "omit"})
    assert (one, hash(one)) == (other, hash(other))


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({}, ["default"]),
        ({"text": "body"}, ["default"]),
        ({"default": "all", "text": None, "skills": ["body"]}, ["default", "text", "skills"]),
        (["default"], ["a selection"]),
        ({"default": "omit", "skills": "body", "x y": "metadata"}, []),
    ],
)
def test_a_selection_that_is_none_is_told_member_by_member(value: Any, named: list[str]) -> None:
    found = list(problems(value))
    assert len(found) == len(named)
    assert all(text.startswith(name) for text, name in zip(found, named, strict=True))


def test_a_selection_with_problems_is_not_built() -> None:
    with pytest.raises(ValueError, match="default: missing"):
        Selection.of({"text": "body"})
