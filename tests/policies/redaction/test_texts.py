"""What the pipeline takes out of texts, and what it leaves."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.policies.redaction.listed import too_short
from hookbus.policies.redaction.redactor import Redactor, Settings
from tests.corpus.secrets import HARMLESS, HOME, LISTED, PERSONAL, SECRETS

REDACTOR = Redactor(Settings(secrets=(LISTED,), home=HOME))
SECRET = "[REDACTED:secret]"  # noqa: S105 - a token that replaces one
PII = "[REDACTED:pii]"
ALL = SECRETS | PERSONAL

AROUND = ("{}", "see {}", "{}\nnext line", "first line\n{}", "a ({}) b", "é {} \U0001f600")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("around", AROUND)
def test_a_secret_goes_wherever_it_stands_in_a_text(name: str, around: str) -> None:
    """Nothing of it is left that would be worth stealing."""
    text, gone = ALL[name]
    assert gone in text
    assert gone not in REDACTOR.text(around.format(text))


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    """Prose, versions, dates, counts, ids, hashes, names of files and models, code, amounts."""
    assert REDACTOR.text(text) == text
    assert REDACTOR.value({"note": [text]}) == {"note": [text]}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_marked_as_one_even_if_it_looks_like_something_else(name: str) -> None:
    """The stages of secrets come before that of people."""
    assert SECRET in REDACTOR.text(SECRETS[name].text)


@pytest.mark.parametrize("name", PERSONAL)
def test_people_are_left_only_where_the_operator_says_so(name: str) -> None:
    """Addresses and numbers depend on the switch, home directories don't."""
    made = Redactor(Settings(home=HOME, pii=False)).text(PERSONAL[name].text)
    if name.startswith("home"):
        assert "~" in made
    else:
        assert made == PERSONAL[name].text
        assert PII in REDACTOR.text(made)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('x {"password":"a b","ok":"no"}', f'x {{"password":"{SECRET}","ok":"no"}}'),
        ("FOO_PASSWORD=abc next", f"FOO_PASSWORD={SECRET} next"),
        ("https://x.example/?token=abc&n=1", f"https://x.example/?token={SECRET}&n=1"),
        ("postgres://u:p@db.example/app", f"postgres://{SECRET}@db.example/app"),
        ("/home/alice/x", "~/x"),
        ("C:\\Users\\bob\\x", "~\\x"),
        ("mail bob@x.example.", f"mail {PII}."),
        ("https://h.example/T0/EXAMPLEPATH0123456 -> 4", f"https://h.example/T0/{SECRET} -> 4"),
    ],
)  # fmt: skip
def test_what_stands_around_a_secret_stays(text: str, expected: str) -> None:
    """Only the secret goes: not the rest of a JSON text, of a URL or of a line."""
    assert REDACTOR.text(text) == expected


def test_listed_values_that_are_too_short_are_ignored_and_counted() -> None:
    """They would redact everything."""
    assert Redactor(Settings(secrets=("abc", ""))).text("abc abc") == "abc abc"
    assert too_short(("abc", "", "abcd")) == 2


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_that_is_split_over_adjacent_texts_goes_from_all_of_them(name: str) -> None:
    """Wherever it is cut, the texts together don't hold it."""
    text, gone = SECRETS[name]
    for cut in range(1, len(text), 3):
        made = REDACTOR.texts(["before ", text[:cut], text[cut:], " after"])
        assert gone not in "".join(made)
        assert len(made) == 4
    assert REDACTOR.texts(["before ", " after"]) == ["before ", " after"]


pieces = st.lists(
    st.one_of(
        st.sampled_from([sample.text for sample in ALL.values()]),
        st.sampled_from(HARMLESS),
        st.sampled_from(list("=:\"'\\/@.,;&?#(){}[]<> \n-_0123456789abAKIA")),
        st.sampled_from((SECRET, PII, "~", "password", "token=", "Bearer ", "-----BEGIN ", "eyJ")),
        st.text(max_size=8),
    ),
    max_size=8,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(pieces)
def test_redacting_again_changes_nothing(text: str) -> None:
    """Whatever the text."""
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


@settings(max_examples=150, deadline=None)
@given(st.lists(pieces, max_size=4))
def test_redacting_adjacent_texts_again_changes_nothing(texts: list[str]) -> None:
    """Nor does it move text from one to another."""
    once = REDACTOR.texts(texts)
    assert len(once) == len(texts)
    assert REDACTOR.texts(once) == once


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(("a", "password", "x y", "é")), pieces, min_size=1))
def test_a_text_that_is_json_stays_json_of_the_same_keys(tree: dict[str, str]) -> None:
    """It is redacted as the tree that it is."""
    made = json.loads(REDACTOR.text(json.dumps(tree)))
    assert made == REDACTOR.value(tree)
    assert list(made) == list(tree)
