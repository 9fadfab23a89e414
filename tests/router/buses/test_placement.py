"""Keys are placed as every Kafka client places them."""

from __future__ import annotations

import pytest

from hookbus.router.buses.placement import Placement


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_goes_where_the_java_client_puts_it(key: bytes, hashed: int) -> None:
    """The values are those of Kafka's own UtilsTest."""
    for partitions in (1, 2, 3, 4, 12, 97):
        assert Placement().place(key, partitions) == (hashed & 0x7FFFFFFF) % partitions


def test_placing_is_stable() -> None:
    """The cache changes nothing."""
    placement = Placement()
    first = [placement.place(b"%d" % number, 7) for number in range(1000)]
    assert first == [placement.place(b"%d" % number, 7) for number in range(1000)]
    assert set(first) == set(range(7))
