"""What the router remembers of one partition while it holds it."""

from __future__ import annotations

from msgspec import Struct

from hookbus.codecs.aep_stream import Streams
from hookbus.policies.correlation import PendingRequests


class Memory(Struct, frozen=True):
    """`pending` survives a restart and moves with the partition. `streams` does neither: after a
    restart the rules of streams see only what comes then, and miss breaches rather than invent
    them."""

    pending: PendingRequests
    streams: Streams
