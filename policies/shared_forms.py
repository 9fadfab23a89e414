"""Forms that many requests have in common, held once: servers ask the same forms again."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_MOST: Final = 512
_LONGEST: Final = 8192
"""Bytes: all that are held here are 4 MB at the most."""


def shared_form(form: bytes) -> bytes:
    """The first of the equal forms that were seen of late; a long one is returned as it is."""
    return form if len(form) > _LONGEST else _first_equal(form)


def _itself(form: bytes) -> bytes:
    return form


_first_equal: Final = lru_cache(_MOST)(_itself)
