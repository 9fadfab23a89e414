"""Apache Kafka over TLS, as configurations reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.brokers import Broker
from tests.processes import BusKind

_PASSWORD = "HOOKBUS_TEST_PASSWORD"  # noqa: S105 - the name of a variable


class Secured(BusKind):
    """The listener with TLS and a login, as one user; `changes` to the section of Kafka."""

    def __init__(self, broker: Broker, user: str, **changes: Any) -> None:
        super().__init__("kafka", broker.sasl_tls)
        self._kafka = {
            "security": "SASL_SSL",
            "tls": {"ca_file": broker.ca_file},
            "sasl": {"mechanism": "PLAIN", "username": user, "password": {"env": _PASSWORD}},
            **changes,
        }

    def section(self, folder: Path) -> dict[str, Any]:
        section = super().section(folder)
        section["kafka"] |= {name: value for name, value in self._kafka.items() if value}
        return section


@pytest.fixture
def kafka(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """Apache Kafka; processes have the password of its users in their environment."""
    if broker.name != "kafka":
        pytest.skip("needs HOOKBUS_TEST_BROKER=kafka")
    monkeypatch.setenv(_PASSWORD, "secret")
    return broker
