"""The image, built once for all tests of what is deployed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.deploy.image import Image, build, clone, python
from tests.integration.deploy.sandbox import Sandbox, unavailable


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Where roots live."""
    if why := unavailable():
        pytest.skip(why)
    with Sandbox(tmp_path_factory.mktemp("roots"), python()) as made:
        yield made


@pytest.fixture(scope="session")
def image(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The container image of what is committed."""
    return build(sandbox, clone(tmp_path_factory.mktemp("build") / "clone"))
