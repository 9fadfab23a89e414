"""What a plan says of the bus."""

import pytest

from hookbus.router import build
from hookbus.router.configuration import plan
from hookbus.router.configuration.config_file import parse

NO_LOGIN = "bus.kafka.sasl: goes with security SASL_PLAINTEXT or SASL_SSL, and they need it"


def problems(kafka, codecs=("none", "gzip")):
    text = f'bus: {{kafka: {{bootstrap_servers: "kafka:9092", {kafka}}}}}'
    return plan.problems(parse(text), build.event_types(), codecs)


def test_a_compression_that_can_not_be_done_here_is_refused_and_how_to_get_it_said():
    """At the first batch it would be too late."""
    (problem,) = problems("compression: zstd")
    assert problem == (
        "bus.kafka.compression: zstd needs a package that is not installed "
        "(pip install 'hookbus[compression]')"
    )
    assert problems("compression: zstd", ("none", "gzip", "zstd")) == []
    assert problems("compression: gzip") == []


@pytest.mark.parametrize(
    "name", ["batch_size", "fetch_min_bytes", "fetch_max_bytes", "max_partition_fetch_bytes"]
)
def test_a_size_of_nothing_is_refused(name):
    assert problems(f"{name}: 0B") == [f"bus.kafka.{name}: at least 1B"]
    assert problems(f"{name}: 1MiB, linger: 5ms, fetch_max_wait: 100ms") == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("security: SASL_SSL", [NO_LOGIN]),
        ("tls: {ca_file: ca.pem}", ["bus.kafka.tls: goes with security SSL or SASL_SSL"]),
        ("security: SSL, tls: {key_file: k}", ["bus.kafka.tls.key_file: goes with cert_file"]),
        ("security: SSL, tls: {cert_file: c.pem, key_file: key.pem}", []),
        ("security: SSL, tls: {cert_file: both.pem}", []),
    ],
)  # fmt: skip
def test_a_login_or_a_certificate_that_nobody_would_use_is_refused(settings, expected):
    """A key without its certificate, for one, would be ignored in silence."""
    assert problems(settings) == expected
