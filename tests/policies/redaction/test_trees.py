"""What the pipeline does to JSON trees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbus.policies.redaction.redactor import Redactor, Settings
from tests.corpus.secrets import HOME, LISTED, SECRETS

REDACTOR = Redactor(Settings(secrets=(LISTED, "8675309123"), home=HOME))
SECRET = "[REDACTED:secret]"  # noqa: S105 - a token that replaces one


@pytest.mark.parametrize(
    "key",
    ["password", "PassWord", "db_password", "db-password", "dbPassword", "DBPASSWORD", "apiKey",
     "X-Api-Key", "client_secret", "clientsecret", "Authorization", "Set-Cookie", "accessToken",
     "refresh_token", "passphrase", "private_key", "credentials", "AWS_SECRET_ACCESS_KEY"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["x", 1.5, True, ["a", 1], {"a": {"b": "c"}}, ""])
def test_the_whole_value_of_a_credential_named_key_goes(key: str, value: Any) -> None:
    """At any depth, whatever it is; null says nothing and stays."""
    assert REDACTOR.value({"a": [{key: value}]}) == {"a": [{key: SECRET}]}
    assert REDACTOR.value({key: None}) == {key: None}


@pytest.mark.parametrize(
    "tree",
    [
        {"max_tokens": 4096, "input_tokens": 5, "tokens": {"input": 1}, "token_count": 3},
        {"token_type": "bearer", "secret_name": "deploy", "password_policy": "strict"},
        {"key": "name", "author": "x", "keyboard": "y", "passed": 3, "pass": 12, "monkey": "z"},
        {"card": {"title": "x"}, "pin": True, "code": 404, "id": 12345678, "big": 2**70},
        {"properties": {"password": {"type": "string", "title": "Password"}},
         "required": ["password", "name"]},
        {"name": "HOME_PAGE", "value": "x"},
        ["--verbose", "x"], [["Accept", "x"]], [], {}, None, 1.5, False,
    ],
)  # fmt: skip
def test_a_tree_without_secrets_stays(tree: Any) -> None:
    """Amounts of tokens, forms whose property is named password, and what merely sounds alike."""
    assert REDACTOR.value(tree) == tree


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"card": 4111111111111111, "amount": 12.5}, {"card": SECRET, "amount": 12.5}),
        ([8675309123, 1], [SECRET, 1]),
        ({"name": "DB_PASSWORD", "value": "x"}, {"name": "DB_PASSWORD", "value": SECRET}),
        ([["Authorization", "x"], ["Accept", "y"]], [["Authorization", SECRET], ["Accept", "y"]]),
        (["login", "--password", "x"], ["login", "--password", SECRET]),
        (["password:", "hunter"], ["password:", SECRET]),
        ('{"a":{"pass\\u0077ord":"hunter"}}', f'{{"a":{{"password":"{SECRET}"}}}}'),
        ({"arguments": '{"password": {"v": 1}}'}, {"arguments": f'{{"password":"{SECRET}"}}'}),
    ],
)
def test_secrets_are_known_by_what_stands_beside_them(tree: Any, expected: Any) -> None:
    """Numbers by their digits, values by the name next to them, JSON by its members."""
    assert REDACTOR.value(tree) == expected


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([sample.text for sample in SECRETS.values()]), st.text(max_size=10),
)  # fmt: skip
keys = st.sampled_from(("a", "name", "value", "password", "properties", "type", "token", "é", "b"))
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
)


def same_shape(one: Any, other: Any) -> bool:
    """Keys in their order, lengths of lists, and texts stay; the value of a key may become text."""
    if isinstance(other, str):
        return isinstance(one, str) or other == SECRET
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same_shape(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_shape, one, other))
    return one == other and type(one) is type(other)


@settings(max_examples=300, deadline=None)
@given(trees)
def test_a_tree_keeps_its_shape_and_stays_redacted(tree: Any) -> None:
    """Redacting again changes nothing."""
    once = REDACTOR.value(tree)
    assert same_shape(tree, once)
    assert REDACTOR.value(once) == once
