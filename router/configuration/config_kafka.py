"""The configuration of the Kafka bus; names are Kafka's, without their units."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from hookbus.router.configuration.config_types import Name, default
from hookbus.router.configuration.units import Duration, Secret, Size


class Kafka(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the cluster is reached, and what clients ask of it."""

    bootstrap_servers: Name
    """`host:port`, several separated by commas."""
    client_id: Name = "hookbus"
    """What brokers show in logs and quotas."""
    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """The security protocol; with SSL in it the connection is TLS, with SASL there is a login."""
    tls: KafkaTls | None = None
    """Goes with SSL and SASL_SSL; left out, the system's authorities are trusted."""
    sasl: Sasl | None = None
    """The login; SASL_PLAINTEXT and SASL_SSL need it."""
    session_timeout: Duration = default(Duration(10))
    """How long a process may be silent before its partitions go to others."""
    request_timeout: Duration = default(Duration(15))
    """The bound on each exchange with the cluster, a publish or a transaction with all its
    acknowledgements included."""
    max_message: Size = default(Size(1_000_000))
    """The largest record to write; no larger than the brokers' `message.max.bytes`."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    """Of the batches that are written. All but gzip need `pip install 'hookbus[compression]'`,
    reading them too. Measured beside a broker on one machine: gzip is 0.77 times as fast as none,
    lz4 0.92 times, zstd 1.04 times."""
    batch_size: Size = default(Size(256 * 1024))
    """The most bytes of one batch to a partition, before compression. Measured: 16KiB are 0.73
    times as fast, 900KiB no faster."""
    linger: Duration = default(Duration(0))
    """How long a batch that is not full waits for more. The router has whole batches anyway:
    measured, 5ms gain nothing."""
    fetch_min_bytes: Size = default(Size(1))
    """A broker answers a fetch once it has so much."""
    fetch_max_wait: Duration = default(Duration(0.5))
    """Or after this time."""
    fetch_max_bytes: Size = default(Size(50 * 2**20))
    """The most that a broker answers at once."""
    max_partition_fetch_bytes: Size = default(Size(2**20))
    """The most of it for one partition; a larger `max_message` counts instead. Measured: 4MiB are
    0.95 times as fast."""
    group_instance_id: Secret | None = None
    """Static membership: where the name of this process is, for processes with stable and unique
    names, such as the pods of a StatefulSet, and no others; each of several `workers` adds its
    number. Left out, membership is dynamic."""


class KafkaTls(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """PEM files, read when a client starts. Names of brokers are always checked."""

    ca_file: Name | None = None
    """The authorities that brokers' certificates are checked against, instead of the system's."""
    cert_file: Name | None = None
    """The certificate of this client, with its chain, where brokers ask for one."""
    key_file: Name | None = None
    """Its private key, without a passphrase."""


class Sasl(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The login to Kafka."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    """PLAIN sends the password as it is: only with SASL_SSL."""
    username: Name
    """Kafka's principal is `User:` and this name."""
    password: Secret
    """Read when a process starts."""
