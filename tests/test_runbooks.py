"""The runbooks: one for each alert, and nothing in them that the command line would refuse."""

import re
import shlex

import pytest

from hookbus.router.usage.every import COMMANDS as USAGES
from hookbus.router.usage.parser import make
from tests.brokers import ROOT
from tests.prometheus import alerts

TEXT = (ROOT / "docs/runbooks.md").read_text()
SECTIONS = {
    section.partition("\n")[0]: section
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
}
COMMANDS = sorted(
    {
        *re.findall(r"^(hookbus .*)$", TEXT, flags=re.MULTILINE),
        *re.findall(r"`(hookbus [^`]*)`", TEXT),
    }
)


def test_every_alert_has_its_section_and_every_section_its_alert():
    assert sorted(SECTIONS) == sorted(alerts())


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
def test_a_section_says_what_it_means_and_what_to_do_and_not_to_do_and_when_it_is_over(section):
    said = re.findall(r"^\*\*(Means|Confirm|Do|Don't|Resolves)\b", section, flags=re.MULTILINE)
    assert said == ["Means", "Confirm", "Do", "Don't", "Resolves"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_in_a_runbook_is_one_that_hookbus_takes(command):
    ours, _, _ = command.partition(" | ")
    options = make(USAGES).parse(shlex.split(ours)[1:])
    assert options.usage.module


def test_there_are_commands():
    assert len(COMMANDS) > 10


def test_an_alert_that_a_section_refers_to_exists():
    assert set(re.findall(r"\bHookbus[A-Z]\w+", TEXT)) == set(alerts())
