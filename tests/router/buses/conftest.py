"""The buses under test, and coroutine tests."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.router.buses.rig import Rig


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a loop of its own; none may take longer than two minutes."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def run() -> None:
        async with asyncio.timeout(120):
            await pyfuncitem.obj(**arguments)

    asyncio.run(run())
    return True


@pytest.fixture
def sqlite(tmp_path: Path) -> Rig:
    return Rig("sqlite", str(tmp_path / "bus.db"))


@pytest.fixture
def kafka(kafka_bootstrap: str) -> Rig:
    return Rig("kafka", f"kafka://{kafka_bootstrap}")


@pytest.fixture
def exactly_once(broker: Broker) -> Rig:
    if broker.name != "kafka":
        pytest.skip("transactions need HOOKBUS_TEST_BROKER=kafka")
    return Rig("exactly-once", f"kafka://{broker.bootstrap}?exactly-once")


BUSES = ["sqlite", *(pytest.param(n, marks=pytest.mark.kafka) for n in ("kafka", "exactly_once"))]


@pytest.fixture(params=BUSES)
def rig(request: pytest.FixtureRequest) -> Rig:
    """Every bus in turn; the contract is the same."""
    found: Rig = request.getfixturevalue(request.param)
    return found
