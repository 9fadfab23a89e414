"""What is wrong with the bus of a configuration. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from hookbus.router.configuration.config import BusConfig, HttpBackend
from hookbus.router.configuration.config_kafka import KafkaTls

ALL_CODECS: Final = frozenset(("none", "gzip", "snappy", "lz4", "zstd"))


def bus_problems(bus: BusConfig, codecs: Collection[str]) -> Iterator[str]:
    """`codecs` are the compressions that can be done here."""
    if (bus.kafka is None) == (bus.sqlite is None):
        yield "bus: name exactly one of kafka and sqlite"
    if bus.kafka is None:
        return
    if bus.kafka.security.startswith("SASL") != (bus.kafka.sasl is not None):
        yield "bus.kafka.sasl: goes with security SASL_PLAINTEXT or SASL_SSL, and they need it"
    if bus.kafka.tls is not None and not bus.kafka.security.endswith("SSL"):
        yield "bus.kafka.tls: goes with security SSL or SASL_SSL"
    if bus.kafka.tls is not None:
        yield from (f"bus.kafka.tls.{problem}" for problem in certificate_problems(bus.kafka.tls))
    if bus.kafka.compression not in codecs:
        yield (
            f"bus.kafka.compression: {bus.kafka.compression} needs a package that is not installed "
            "(pip install 'hookbus[compression]')"
        )
    for name in ("batch_size", "fetch_min_bytes", "fetch_max_bytes", "max_partition_fetch_bytes"):
        if getattr(bus.kafka, name) < 1:
            yield f"bus.kafka.{name}: at least 1B"


def certificate_problems(files: KafkaTls | HttpBackend) -> Iterator[str]:
    """A key alone would be ignored in silence."""
    if files.key_file is not None and files.cert_file is None:
        yield "key_file: goes with cert_file"
