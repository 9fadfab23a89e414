import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from hookbus.router.telemetry.logs import JsonFormatter
from tests.brokers_plugin import broker, kafka_bootstrap  # noqa: F401 - fixtures for all tests

# How long an example takes says more of the machine than of the code.
settings.register_profile("hookbus", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hookbus")


@pytest.fixture(autouse=True)
def own_logs() -> Iterator[None]:
    """A command that a test runs in this process says how it logs; the next test knows nothing of
    it."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if isinstance(handler.formatter, JsonFormatter):
            root.removeHandler(handler)
