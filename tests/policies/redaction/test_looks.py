"""The quick look at a text finds what the thorough one finds: only the time differs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.policies.redaction.assignments import STARTS
from hookbus.policies.redaction.looks import quick_look, thorough_look
from hookbus.policies.redaction.redactor import Redactor, Settings
from hookbus.policies.redaction.tokens import SCHEMES, VENDORS
from tests.corpus.secrets import HARMLESS, HOME, LISTED, PERSONAL, SECRETS

SETTINGS = [
    Settings(),
    Settings(secrets=(LISTED, "aaaa", "\udcff bytes", "8675309123"), home=HOME),
    Settings(home="/", pii=False),
]
PAIRS = [(Redactor(each), Redactor(each, thorough_look)) for each in SETTINGS]

SAMPLES = (*(sample.text for sample in (SECRETS | PERSONAL).values()), *HARMLESS)
samples = st.sampled_from(SAMPLES)
cut = st.tuples(samples, st.integers(0, 80), st.integers(0, 80)).map(lambda s: s[0][s[1] : s[2]])
words = st.sampled_from((*VENDORS, *SCHEMES, *STARTS)).flatmap(
    lambda word: st.sampled_from((word, word.upper(), word.title(), word + " ", word + "="))
)
joints = st.sampled_from(
    ("=", ": ", " := ", "=>", "<", ">", "-", "--", "?", "&", "#", " ", "\t", "\n", '"', "\\", "@")
)
starts = st.sampled_from(
    ("-----BEGIN ", "://", "/home/", "/Users/", "/root", "C:\\Users\\",
     "d:/documents and settings/", " -u a:", "--user=", "+1 ", "tel: ", "4111 1111 1111 1111",
     "2026-03-12", "cvcvcvc", "[{", "}")
)  # fmt: skip
bodies = st.sampled_from(
    ("EXAMPLE0123abcdefXYZ", "0123456789abcdef" * 2, "a" * 16, "A1" * 9, "example.com",
     "eyJabcdef.a", "[REDACTED:secret]", "[REDACTED:pii]", "~", "null", LISTED, LISTED[:9],
     "aaaaaaa", HOME)
)  # fmt: skip
strange = st.sampled_from(
    ("\u017f", "\u212a", "\u0130", "\u0131", "u\u017fers", "to\u212aen=", "pa\u017f\u017fword=",
     "\u03a3", "\u0664\u0661", "\uff14", "\u24b6", "\udcff", "\U0001f600")
)  # fmt: skip
"""Letters that a pattern without case takes for others, other digits, a lone surrogate."""
texts = st.lists(
    st.one_of(words, joints, starts, bodies, cut, samples, strange, st.text(max_size=3)),
    max_size=9,
).map("".join)
keys = st.sampled_from(("a", "name", "value", "password", "card", "pin", "tokens", "properties"))
leaves = st.one_of(texts, st.booleans(), st.integers(), st.floats(allow_nan=False), st.none())
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
)


BARELY = (
    'Digest a="b"', "bearer\tabcdef123", "token\tABCdef1234", "tel: 0301234", "call 030 12 34",
    "4111111" + "\u0661" * 9, "C:\\U\u017fers\\bob\\x", "-u\ta:b", "--proxy-user=a:b", "x/root",
    "cvCvc" + "_" * 39 + "=abc", "cvCvc" + "_" * 38 + "=abc", "cvCvcVc=a cvc=b",
    "\udcff bearer abcdef123", "to\u212aen=abc", "#a&pass=b", ";key=aB3", "?a=&sig=aB3",
)  # fmt: skip
"""Texts in which something is only just what it has to be."""


@pytest.mark.parametrize("text", [*BARELY, *SAMPLES])
def test_a_text_at_the_edge_becomes_the_same_after_either_look(text: str) -> None:
    """With the fewest digits, other letters for the same, words that overlap, rare separators; and
    a sample of each class."""
    for quick, thorough in PAIRS:
        assert quick.text(text) == thorough.text(text)


@settings(max_examples=1_000, deadline=None)
@given(st.sampled_from(PAIRS), texts)
def test_a_text_becomes_the_same_after_either_look(
    pair: tuple[Redactor, Redactor], text: str
) -> None:
    """Whatever it is made of, near to secrets or not."""
    quick, thorough = pair
    assert quick.text(text) == thorough.text(text)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PAIRS), st.lists(texts, max_size=4), st.sampled_from(("", "\n")))
def test_adjacent_texts_become_the_same_after_either_look(
    pair: tuple[Redactor, Redactor], adjacent: list[str], joint: str
) -> None:
    """Also where one look at all of them together is enough."""
    quick, thorough = pair
    assert quick.texts(adjacent, joint) == thorough.texts(adjacent, joint)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PAIRS), trees)
def test_a_tree_becomes_the_same_after_either_look(
    pair: tuple[Redactor, Redactor], tree: Any
) -> None:
    """With numbers and names of members."""
    quick, thorough = pair
    assert quick.value(tree) == thorough.value(tree)


@pytest.mark.parametrize("name", ["PEM", "code host, fine-grained", "flag", "header, digest"])
def test_nothing_is_missed_where_a_long_text_is_searched_in_pieces(name: str) -> None:
    """Wherever the border between two pieces falls."""
    redactor, text = Redactor(Settings()), SECRETS[name].text
    alone = redactor.text(text)
    for before in range(65_536 - len(text) - 1, 65_536 + 2):
        assert redactor.text("." * (before - 1) + " " + text)[before:] == alone


@pytest.mark.parametrize(
    "text", ["The password of a man.", "v1.2, 7 rows", "nothing at all", "", "a-b.c_d"]
)
def test_the_quick_look_sees_that_there_is_nothing_to_look_for(text: str) -> None:
    """Otherwise it would be the same because it is as slow."""
    assert thorough_look(text).kinds
    assert not quick_look(text).kinds


def test_what_short_texts_became_is_remembered_for_a_bounded_number_of_them() -> None:
    """Of long ones nothing is kept."""
    redactor = Redactor(Settings())
    for number in range(2_000):
        redactor.text(f"password={number}")
    assert 0 < redactor.remembered() <= 512
    before = redactor.remembered()
    redactor.text("x" * 1_000)
    assert redactor.remembered() == before
