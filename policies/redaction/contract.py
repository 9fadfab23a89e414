"""What the makers of copies need of a redactor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Redacts(Protocol):
    """See `hookbus.policies.redaction.redactor.Redactor`. Whatever one of these raises costs the
    copy its content, and nothing else."""

    def text(self, text: str) -> str: ...

    def texts(self, texts: Sequence[str], joint: str = "") -> list[str]: ...

    def value(self, tree: Any) -> Any: ...

    def number_is_secret(self, number: int | float) -> bool: ...
