"""How far a consumer group may advance in one partition.

Only the unbroken prefix of settled records counts, over the offsets that were *received*: holes
(transaction markers, compaction) never existed for this consumer, so nobody waits for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol


class Numbered(Protocol):
    """Something that has an offset."""

    @property
    def offset(self) -> int: ...


class Watermark:
    """The settled prefix of one partition during one assignment. Pure; offsets are integers.

    >>> mark = Watermark()
    >>> for offset in (5, 6, 9): mark.received(offset)
    >>> mark.settled(6), mark.settled(5), mark.settled(9)
    (5, 7, 10)
    """

    __slots__ = ("_next", "_open", "_order")

    def __init__(self) -> None:
        self._order: deque[int] = deque()  # received and not passed, ascending
        self._open: dict[int, object] = {}  # of those, not settled, and as what they were received
        self._next: int | None = None

    @property
    def next(self) -> int | None:
        """The next offset to commit; None before anything was received."""
        return self._next

    @property
    def outstanding(self) -> int:
        """How many received records are not settled."""
        return len(self._open)

    def holds(self, record: Numbered) -> bool:
        """Whether this very record was received and is not settled yet. One that is equal may be
        of a former assignment."""
        return self._open.get(record.offset) is record

    def received(self, offset: int, record: object = None) -> None:
        """Note a record, in offset order."""
        if self._next is None:
            self._next = offset
        self._order.append(offset)
        self._open[offset] = record

    def take(self, records: Sequence[Numbered]) -> None:
        """Note that these were received, in offset order."""
        for record in records:
            self.received(record.offset, record)

    def settled(self, offset: int) -> int | None:
        """Note that a record is done with and return the next offset to commit. An offset that was
        never received, or is settled already, changes nothing."""
        return self.settle((offset,))

    def settle(self, offsets: Iterable[int]) -> int | None:
        """As `settled`, for several."""
        for offset in offsets:
            self._open.pop(offset, None)
        while self._order and self._order[0] not in self._open:
            self._next = self._order.popleft() + 1
        return self._next

    def after(self, offsets: Iterable[int]) -> int | None:
        """The next offset to commit if these were settled too. Changes nothing, so that a commit
        that fails leaves no trace."""
        extra = set(offsets)
        reached = self._next
        for offset in self._order:
            if offset in self._open and offset not in extra:
                break
            reached = offset + 1
        return reached
