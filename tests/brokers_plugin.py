"""The session's broker as a fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers import Broker, chosen


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """The broker that HOOKBUS_TEST_BROKER names, for the whole session."""
    with chosen() as running:
        yield running


@pytest.fixture(scope="session")
def kafka_bootstrap(broker: Broker) -> str:
    """What a Kafka client connects to."""
    return broker.bootstrap
