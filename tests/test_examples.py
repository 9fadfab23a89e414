"""The example configurations, and the one in the README."""

import re
from pathlib import Path

import pytest

from hookbus.router import build
from hookbus.router.configuration import plan
from hookbus.router.configuration.config_file import load, parse

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "deploy" / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_has_no_problems(path):
    """It can be started from."""
    assert plan.problems(load(path), build.event_types()) == []


def test_there_are_examples():
    """They are where the README says."""
    assert len(EXAMPLES) >= 2


def test_the_readmes_configuration_has_no_problems():
    """What a newcomer copies works."""
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert plan.problems(parse(text), build.event_types()) == []
