"""What hookbus has to know to talk to a Kafka cluster."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

_HEADROOM: Final = 16 * 1024  # for keys, headers and the batch envelope, below the broker's 1 MiB

_LONGEST_TRANSACTION: Final = 15 * 60.0  # brokers' default for transaction.max.timeout.ms


class NewTopics(Struct, frozen=True):
    """How missing topics are made."""

    partitions: int
    replication: int


class KafkaSettings(Struct, frozen=True, kw_only=True):
    """Durations are in seconds, sizes in bytes; `password` is the secret itself.

    `request_timeout` bounds every single exchange with the cluster, a publish with all its
    acknowledgements included. `group_instance_id` asks for static membership: only for processes
    whose names are stable and unique, because two holders of one id push each other out.
    `read_ahead` is how many records a reader keeps ready; the other names are Kafka's.
    `exactly_once` has readers settle in transactions; `request_timeout` bounds each of them.
    """

    bootstrap_servers: str
    client_id: str = "hookbus"
    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str | None = None
    password: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    session_timeout: float = 10.0
    request_timeout: float = 15.0
    close_timeout: float = 5.0
    max_message_bytes: int = 1024 * 1024 - _HEADROOM
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    batch_bytes: int = 256 * 1024
    linger: float = 0.0
    fetch_min_bytes: int = 1
    fetch_max_wait: float = 0.5
    fetch_max_bytes: int = 50 * 1024 * 1024
    max_partition_fetch_bytes: int = 1024 * 1024
    read_ahead: int = 2000
    group_instance_id: str | None = None
    exactly_once: bool = False

    @property
    def transaction_timeout(self) -> float:
        """When the broker aborts a transaction by itself: later than its owner gives it up, which
        is after `request_timeout`, and no later than brokers allow by default."""
        return min(2 * self.request_timeout, _LONGEST_TRANSACTION)

    def __repr__(self) -> str:
        # The generated one would show the password in a traceback or a log.
        return f"KafkaSettings({self.bootstrap_servers!r}, {self.protocol})"
