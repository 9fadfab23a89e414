"""Completion in real shells: what stands on the command line after a TAB."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import PATIENCE

BIN = Path(sys.executable).parent
TAB, HOME, END = b"\t", b"\x01", b"\x05"
TYPED = {
    "hookbus downl": "hookbus downlevel",
    "hookbus deadletters rep": "hookbus deadletters replay",
    "hookbus run --registration-c": "hookbus run --registration-capture",
    "hookbus run --log-level w": "hookbus run --log-level warning",
    "hookbus check --format ah": "hookbus check --format ahp",
    "hookbus deadletters list --reason duplic": "hookbus deadletters list --reason duplicate_key",
    "hookbus run -c hookbus.yaml --only rou": "hookbus run -c hookbus.yaml --only router",
    "hookbus run -c hookbus.yaml --only sink:local.a": "hookbus run -c hookbus.yaml --only "
    "sink:local.archive",
    "hookbus failures list -c hookbus.yaml --sink local.d": "hookbus failures list -c hookbus.yaml "
    "--sink local.dashboard",
    "hookbus publish -c hookbus.yaml --ingress ag": "hookbus publish -c hookbus.yaml --ingress "
    "agents",
    "hookbus tail -c hookbus.yaml --topic hookbus.fa": "hookbus tail -c hookbus.yaml --topic "
    "hookbus.failures",
    "hookbus help downl": "hookbus help downlevel",
    "hookbus help deadletters rep": "hookbus help deadletters replay",
    "hookbus check sess": "hookbus check session.jsonl",
    "hookbus plan -c hookb": "hookbus plan -c hookbus.yaml",
}
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(hookbus completion bash)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'autoload -Uz compinit; compinit -u -D; bindkey -e; eval "$(hookbus completion zsh)"',
    ),
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """A folder with a configuration and a session, and nothing of this machine's shells."""
    folder = tmp_path_factory.mktemp("shell")
    examples = Path(__file__).parent.parent.parent / "deploy" / "examples"
    shutil.copy(examples / "one-machine.yaml", folder / "hookbus.yaml")
    (folder / "session.jsonl").touch()
    return {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), "PWD": str(folder),
        "TERM": "dumb", "LC_ALL": "C.UTF-8",
    }  # fmt: skip


class Terminal:
    """An interactive shell at the other end of a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = b""

    def type(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def wait_for(self, text: bytes) -> None:
        """Until the shell has printed it, since the last time."""
        deadline = time.monotonic() + PATIENCE
        while text not in self._seen:
            ready, _, _ = select.select([self._descriptor], [], [], deadline - time.monotonic())
            if not ready:
                pytest.fail(f"{text!r} is not in {self._seen!r}")
            self._seen += os.read(self._descriptor, 4096)
        self._seen = self._seen.partition(text)[2]


@contextmanager
def shell(words: list[str], environment: Mapping[str, str]) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
        cwd=environment["HOME"], start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        try:
            yield Terminal(ours)
        finally:
            process.kill()
            os.close(ours)


@pytest.mark.parametrize("name", START)
def test_a_tab_completes_what_was_typed(name: str, environment: Mapping[str, str]) -> None:
    """Commands, actions, options, values, names of the configuration, and files."""
    words, start = START[name]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    with shell(words, environment) as terminal:
        terminal.type(f"{start}; echo re''ady\n".encode())
        terminal.wait_for(b"ready")
        for typed, completed in TYPED.items():
            terminal.type(typed.encode() + TAB)
            terminal.type(HOME + b"echo '<' " + END + b" '>'\n")
            terminal.wait_for(f"< {completed} >".encode())


def test_fish_offers_what_completes_the_word(environment: Mapping[str, str]) -> None:
    """With a line about each, where there is one."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    asked = "; ".join(f"complete -C {typed!r}" for typed in TYPED)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"hookbus completion fish | source; {asked}"],
        env=environment, cwd=environment["HOME"], capture_output=True, check=True,
    )  # fmt: skip
    offered = [line.partition("\t")[0] for line in done.stdout.decode().splitlines()]
    assert offered == [completed.split()[-1] for completed in TYPED.values()]


def test_several_possible_values_are_all_offered(environment: Mapping[str, str]) -> None:
    """By the function that bash calls."""
    program = """
        eval "$(hookbus completion bash)"
        COMP_LINE="hookbus downlevel --capture " COMP_POINT=28 COMP_TYPE=9
        COMP_WORDS=(hookbus downlevel --capture "") COMP_CWORD=3
        _python_argcomplete hookbus
        echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", program], env=environment, cwd=environment["HOME"], capture_output=True
    )
    assert done.stdout.decode().split() == ["none", "metadata", "redacted", "full"]
