"""The image, built once for all tests of what is deployed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.deploy import image as images
from tests.integration.deploy.broker import running
from tests.integration.deploy.image import Image, build, clone, python
from tests.integration.deploy.sandbox import Process, Root, Sandbox, unavailable


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Where roots live."""
    if why := unavailable():
        pytest.skip(why)
    with Sandbox(tmp_path_factory.mktemp("roots"), python()) as made:
        yield made


@pytest.fixture(scope="session")
def base(sandbox: Sandbox) -> Root:
    """This machine, with a Python that has nothing but pip."""
    return images.base(sandbox)


@pytest.fixture(scope="session")
def image(sandbox: Sandbox, base: Root, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The container image of what is committed."""
    return build(sandbox, base, clone(tmp_path_factory.mktemp("build") / "clone"))


@pytest.fixture(scope="module")
def kafka(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A broker at `kafka:9092`, or what stands in for it."""
    with running(sandbox, tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
