"""The example configurations, and the one in the README."""

import argparse
import re
import shlex
from pathlib import Path

import pytest

from hookbus.router import build
from hookbus.router.configuration import plan
from hookbus.router.configuration.config_file import load, parse
from hookbus.router.usage.every import COMMANDS
from hookbus.router.usage.parser import make

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "deploy" / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_has_no_problems(path):
    """It can be started from."""
    assert plan.problems(load(path), build.event_types()) == []


def commands(path: Path) -> list[argparse.Namespace]:
    """The processes that an example says to start, in its first comment."""
    said = re.sub(r"\\\n# +", "", path.read_text())
    lines = re.findall(r"^#   hookbus (run .*)$", said, re.MULTILINE)
    return [make(COMMANDS).parse(shlex.split(line)) for line in lines]


@pytest.mark.parametrize("path", [*filter(commands, EXAMPLES)], ids=lambda path: path.name)
def test_the_commands_of_an_example_run_every_part_of_it(path):
    """Once, and on one machine each with a port of its own."""
    config, started = load(path), commands(path)
    every = ["router", *(f"sink:{name}" for name in config.sinks)]
    assert sorted(part for one in started for part in one.only or every) == sorted(every)
    assert len({one.listen for one in started}) == len(started)


def test_there_are_examples():
    """They are where the README says."""
    assert len(EXAMPLES) >= 2


def test_the_readmes_configuration_has_no_problems():
    """What a newcomer copies works."""
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert plan.problems(parse(text), build.event_types()) == []
