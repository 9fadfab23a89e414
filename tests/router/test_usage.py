"""The command line before anything runs: help, examples, and what is said to a wrong one."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hookbus.router.bench.suite import SUITE
from hookbus.router.cli import main
from hookbus.router.usage import bench, names
from hookbus.router.usage.contract import EXITS, Example, Usage
from hookbus.router.usage.every import COMMANDS
from hookbus.router.usage.parser import Parser, make


def _all(usages: tuple[Usage, ...], before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for usage in usages:
        yield (*before, usage.name)
        yield from _all(usage.actions, (*before, usage.name))


WORDS = list(_all(COMMANDS, ()))
USAGES = [usage for command in COMMANDS for usage in (command, *command.actions)]
EXAMPLES = [example for usage in USAGES for example in usage.examples]


def parser_of(words: tuple[str, ...]) -> Parser:
    """The parser of a command or an action."""
    found: Any = make(COMMANDS)
    for word in words:
        (actions,) = [a for a in found._actions if isinstance(a, argparse._SubParsersAction)]
        found = actions.choices[word]
    return found


def commands_in(line: str) -> Iterator[list[str]]:
    """The words of each hookbus command in a line of shell."""
    text = line.removeprefix('eval "$(').removesuffix(')"')
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, "|"]:
        if word in ("|", ">"):
            if words[:1] == ["hookbus"]:
                yield words[1:]
            words = []
        else:
            words.append(word)


@pytest.mark.parametrize("words", [(), *WORDS], ids=" ".join)
def test_help_is_a_page_that_fits_any_terminal(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ASCII, filled to the width at hand but for examples, with its sections."""
    monkeypatch.setenv("COLUMNS", "72")
    text = parser_of(words).format_help()
    assert text.isascii()
    assert all(len(line) <= 72 or line.startswith("    $ ") for line in text.splitlines())
    assert text.startswith(" ".join(["usage: hookbus", *words]))
    assert "\nexit status:\n" in text or words in [("deadletters",), ("failures",)]
    assert "\nexamples:\n" in text or not words


@pytest.mark.parametrize("words", [(), *WORDS], ids=" ".join)
def test_every_option_is_explained_with_its_default(words: tuple[str, ...]) -> None:
    """Or it is required, which is said too."""
    for option in parser_of(words)._actions:
        if isinstance(option, argparse._SubParsersAction | argparse._HelpAction):
            continue
        assert option.help, option.dest
        if option.option_strings and option.dest != "version":
            assert ("required" if option.required else "default") in option.help, option.dest
        if isinstance(option.default, str | int) and not isinstance(option.default, bool):
            assert f"default: {option.default}" in option.help, option.dest


@pytest.mark.parametrize("usage", USAGES, ids=lambda usage: usage.name)
def test_a_usage_names_exit_codes_that_there_are(usage: Usage) -> None:
    """Those of the program, success and wrong usage among them."""
    assert usage.exits.keys() <= EXITS.keys()
    assert usage.actions or {0, 2} <= usage.exits.keys()
    assert callable(import_module(usage.module).execute)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.line)
def test_an_example_is_taken_by_the_real_parser(example: Example) -> None:
    """As it stands in the help."""
    found = list(commands_in(example.line))
    assert found
    for words in found:
        assert make(COMMANDS).parse(words).usage.name in words


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("chekc", "did you mean check?"),
        ("deadletters lst -c f", "did you mean list?"),
        ("run -c f --log-level warn", "did you mean warning?"),
        ("check --formt ahp", "hookbus check: error: unrecognized arguments: --formt; did you mea"),
        ("check --forma=ahp", "did you mean --format?"),
        ("deadletters replay -c f --dryrun", "did you mean --dry-run?"),
        ("downlevel --capture metdata", "did you mean metadata?"),
        ("deadletters list -c f --reason zzz", "choose from bus_unavailable"),
        ("deadletters replay -c f --rate fast", "expected a number above 0"),
        ("deadletters replay -c f --rate nan", "expected a number above 0"),
        ("deadletters replay -c f --max-attempts few", "invalid int value: 'few'"),
        ("tail", "-c/--config, --topic"),
        ("schema one two", "unrecognized arguments: one two"),
        ("", "required: COMMAND"),
    ],
)
def test_a_wrong_command_line_is_told_what_is_near(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It exits with 2, and nothing is on stdout."""
    with pytest.raises(SystemExit) as left:
        main(shlex.split(line))
    told = capsys.readouterr()
    assert left.value.code == 2
    assert said in told.err
    assert told.out == ""


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_an_option_that_no_command_has_is_refused_by_each(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """With 2 and the usage of that command."""
    with pytest.raises(SystemExit) as left:
        main([*words, "--no-such-option"])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("usage: hookbus " + " ".join(words))


@pytest.mark.parametrize("words", [(), *WORDS], ids=" ".join)
def test_help_is_the_same_by_command_and_by_option(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """`hookbus help run` is `hookbus run --help`."""
    shown = []
    for line in (["help", *words], [*words, "--help"]):
        with pytest.raises(SystemExit) as left:
            main(line)
        assert left.value.code == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_the_benchmarks_are_those_of_the_suite() -> None:
    """Their names are known without loading them."""
    assert tuple(SUITE) == bench.NAMES


def loaded_by(program: str) -> set[str]:
    """The modules that a program loads."""
    program += "\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return set(done.stdout.decode().split())


def test_help_and_version_load_nothing_that_only_work_needs() -> None:
    """A shell asks for completion at every TAB."""
    program = "import hookbus.router.cli as cli; cli.make(cli.COMMANDS).format_help()"
    heavy = {"aiohttp", "aiokafka", "fastjsonschema", "ruamel.yaml", "argcomplete", "asyncio"}
    assert loaded_by(program) & heavy == set()


@pytest.mark.parametrize("name", ["check", "downlevel", "filter", "redact", "plan", "schema"])
def test_what_works_offline_loads_no_client(name: str) -> None:
    """Neither Kafka's nor HTTP's: pipes start these again and again."""
    (module,) = [usage.module for usage in COMMANDS if usage.name == name]
    assert loaded_by(f"import {module}") & {"aiohttp", "aiokafka"} == set()


@pytest.mark.parametrize("text", ["", "[]", "bus: [", "sinks: [a]\ningress: {a: 1, 2: {}}", "\xff"])
def test_a_bad_configuration_breaks_no_completion(text: str, tmp_path: Path) -> None:
    """Its good names are offered."""
    file = tmp_path / "hookbus.yaml"
    file.write_bytes(text.encode("latin-1"))
    option = argparse.ArgumentParser().add_argument("--name")
    names.completing(option, lambda tree: [*names.parts(tree), *names.topics(tree)])
    names.completing(option, names.ingresses)
    offered = option.completer(parsed_args=argparse.Namespace(config=file))  # type: ignore[attr-defined]
    assert offered == (["a"] if "ingress" in text else [])
