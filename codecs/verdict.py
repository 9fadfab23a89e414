"""What is said of input that is refused: a code, a JSON Pointer, a keyword; never a value."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Code = Literal[
    "too_large",
    "invalid_utf8",
    "invalid_json",
    "duplicate_key",
    "too_deep",
    "number_range",
    "unknown_protocol",
    "unsupported_type",
    "schema",
    "stream",
]


class Refusal(Struct, frozen=True, omit_defaults=True):
    """Why a value was refused.

    `path` is the JSON Pointer (RFC 6901) of the offending member within the value as it came in,
    `rule` the JSON Schema keyword that it broke, or the rule of `hookbus.codecs.aep_stream`; both
    only where they apply. Member names that no schema names are content, so a pointer ends at the
    last named member.
    """

    code: Code
    path: str | None = None
    rule: str | None = None
