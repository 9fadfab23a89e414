"""The architecture in one file: what travels, and the three things that await.

A *bus* hands out *readers*; a reader is one member of one consumer group. A loop receives records
from its reader, a pure step turns each record into outputs, and `settle` publishes the outputs and
advances the group past the records. A *sink* delivers records to one backend.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

from msgspec import Struct

Headers = tuple[tuple[str, bytes], ...]


class Partition(NamedTuple):
    """One partition of one topic."""

    topic: str
    number: int


class Record(Struct, frozen=True):
    """What a bus holds. `timestamp` is in milliseconds since the epoch; `value` is None for a
    tombstone."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def home(self) -> Partition:
        return Partition(self.topic, self.partition)


class Output(Struct, frozen=True):
    """What is to be appended to a topic; records with the same key share a partition, unless
    `partition` names one. `value` is None for a tombstone, which only a changelog wants."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None

    @property
    def size(self) -> int:
        """An upper bound of the bytes that the record takes on the bus, batch envelope included."""
        headers = 10 * len(self.headers) + sum(map(len, chain.from_iterable(self.headers)))
        return len(self.key or b"") + len(self.value or b"") + 96 + headers


class Settlement(Struct, frozen=True):
    """A record that is done with, and everything that it produced."""

    record: Record
    outputs: tuple[Output, ...] = ()


class Reader(Protocol):
    """One member of a consumer group. Raises BusUnavailable (retry) or BusFatal (give up)."""

    async def receive(self, limit: int, wait: float) -> list[Record]:
        """At most `limit` records, in order within each partition; waits up to `wait` seconds for
        the first. A record is received once per assignment of its partition."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        """Publish the outputs in order, then advance the group; both or neither where the bus can.

        The group's position in a partition advances to the end of the longest unbroken run of
        settled records, counted over the records received; it never passes an unsettled one.
        Settlements whose partition has been taken away since are dropped with their outputs, even
        if it has come back: the new owner receives those records again. After BusUnavailable the
        same call may be repeated. More may be received meanwhile.
        """
        ...

    def assigned(self) -> frozenset[Partition]:
        """The partitions that this member holds now."""
        ...

    def assignment(self, partition: Partition) -> object | None:
        """A token of the present assignment of a partition, another one after each; None if this
        member doesn't hold it. What was kept for an assignment ends with it."""
        ...

    async def lag(self) -> Mapping[Partition, int]:
        """For each assigned partition, the number of records that the group has not passed."""
        ...

    async def close(self) -> None:
        """Leave the group. Settles nothing."""
        ...


class Bus(Protocol):
    """An ordered, partitioned, durable log."""

    async def open(self, topics: Sequence[str], changelogs: Mapping[str, str] = ...) -> None:
        """Connect; create the missing ones of `topics` where the configuration says how, and
        otherwise raise TopicsMissing with their names.

        `changelogs` maps the name of a changelog to the topic that it is partitioned like. Of a
        changelog only the last value of each key is kept, and none that ends in a tombstone.
        """
        ...

    async def probe(self, group: str, topics: Sequence[str]) -> None:
        """Raise what joining a consumer group would, as far as that is known without joining."""
        ...

    async def reader(self, group: str, topics: Sequence[str]) -> Reader:
        """Join a consumer group; a group without a position starts at the oldest record."""
        ...

    async def publish(self, outputs: Sequence[Output]) -> None:
        """Append in order; every output is durable on return."""
        ...

    def scan(
        self, topic: str, *, follow: bool, partition: int | None = None
    ) -> AsyncIterator[Record]:
        """All records of a topic, or of one partition, from the oldest, without a group: up to the
        end as it was when the scan began, or without end if `follow`."""
        ...

    def fetch(self, topic: str, partition: int, offsets: Collection[int]) -> AsyncIterator[Record]:
        """The records of one partition at these offsets, in order, without a group; those that
        don't exist (any more, or yet) are left out. Not for changelogs. Raises TopicsMissing."""
        ...

    async def close(self) -> None: ...
