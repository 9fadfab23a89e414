"""How the work on a hostile text grows with its length: counted, not timed."""

import sys

import pytest

from hookbus.policies.redaction.redactor import Redactor, Settings

UNITS = [
    "password=", "password=x ", "Bearer ", "-----BEGIN PRIVATE KEY-----", "a@", "a@b.", "https://",
    "https://u:p@h/", "?access_token=", "AKIA", "eyJ.", "4111 ", "+1 ", "/home/", "/home/a/", '"\'',
    "{", "[", "\\", "A", "a_", "%41", "sk-", "\n", "é", "0123456789", "key: ",
]  # fmt: skip


def work(text: str) -> int:
    """Calls made while a text is redacted: of our functions, and of the patterns."""
    count = 0

    def see(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    redactor = Redactor(Settings(secrets=("listed-secret-value",), home="/home/me"))
    sys.setprofile(see)
    try:
        redactor.text(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_ten_times_the_text_is_at_most_twelve_times_the_work(unit: str) -> None:
    """Whatever is repeated. What a pattern itself may do is bounded by how it is made."""
    once, tenfold = (unit * (size // len(unit)) for size in (4_000, 40_000))
    assert work(tenfold) <= 12 * max(work(once), 50)
