from pathlib import Path

import pytest

from tests.brokers_plugin import broker, kafka_bootstrap  # noqa: F401 - fixtures for all tests

_REAL = ("integration", "router/buses", "router/sinks")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with real brokers, processes and peers go one after another, in one worker: together
    they would take each other's time, and fail for it."""
    root = Path(__file__).parent
    for item in items:
        if any(item.path.is_relative_to(root / folder) for folder in _REAL):
            item.add_marker(pytest.mark.xdist_group("real"))
