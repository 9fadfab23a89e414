"""Where the name for a static membership comes from."""

from __future__ import annotations

import pytest

from hookbus.router import build_bus
from hookbus.router.configuration.config import BusConfig, Config, Kafka
from hookbus.router.configuration.units import Secret
from hookbus.router.errors import StartupError

CONFIG = Config(
    bus=BusConfig(
        kafka=Kafka(bootstrap_servers="127.0.0.1:9", group_instance_id=Secret(env="HOOKBUS_POD"))
    )
)


@pytest.mark.parametrize("name", [None, "", "two words", "x" * 250])
def test_a_name_that_kafka_would_not_take_refuses_the_start(
    name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for by configuration, so going on without would be a surprise."""
    monkeypatch.delenv("HOOKBUS_POD", raising=False)
    if name is not None:
        monkeypatch.setenv("HOOKBUS_POD", name)
    with pytest.raises(StartupError, match=r"bus\.kafka\.group_instance_id"):
        build_bus.bus(CONFIG)


def test_static_membership_is_off_unless_asked_for() -> None:
    """A name that two processes share makes each push the other out."""
    assert Kafka(bootstrap_servers="kafka:9092").group_instance_id is None


def test_each_worker_adds_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share the configuration and must not share the name: the longest one leaves no room."""
    monkeypatch.setenv("HOOKBUS_POD", "x" * 249)
    build_bus.bus(CONFIG)
    with pytest.raises(StartupError, match=r"bus\.kafka\.group_instance_id"):
        build_bus.bus(CONFIG, worker=1)
