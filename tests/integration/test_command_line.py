"""The command line as a shell uses it: examples, pipes, signals, odd input, completion."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from hookbus.router import build_bus
from hookbus.router.configuration import config_file
from hookbus.router.journal import CHANGELOGS, TOPICS
from hookbus.router.usage.contract import Example, Usage
from hookbus.router.usage.every import COMMANDS
from tests.processes import HOOKBUS, PATIENCE, command, until

ROOT = Path(__file__).parent.parent.parent
SESSION = ROOT / "router" / "demo_session.jsonl"
BIN = Path(sys.executable).parent

INPUT = {
    "check": (),
    "downlevel": ("--capture", "none"),
    "filter": ("--match", "{}"),
    "redact": (),
}
"""The commands that read events and print something for each."""
ENDLESS = ("hookbus run ", "--follow")
ELSEWHERE = ("hookbus demo", "hookbus bench", "eval ")
"""Examples that other tests carry out."""


def _examples() -> Iterator[tuple[Usage, Example]]:
    for outer in COMMANDS:
        for usage in outer.actions or (outer,):
            for example in usage.examples:
                if not any(part in example.line for part in (*ENDLESS, *ELSEWHERE)):
                    yield usage, example


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples name: the shipped session, and the one-machine configuration with its
    topics and journal."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copy(SESSION, folder / "session.jsonl")
    (folder / "secrets.txt").write_text("a-secret-that-is-listed\n")
    (folder / "registration.json").write_text(
        '{"protocolVersion": "draft", "hooks": [{"id": "com.example.policy", "transport": {"type": '
        '"http", "url": "https://hooks.example/"}, "subscriptions": [{"events": ["tool.*"], '
        '"mode": "observe", "content": {"default": "omit"}}]}]}'
    )
    text = (ROOT / "deploy" / "examples" / "one-machine.yaml").read_text()
    config = folder / "hookbus.yaml"
    config.write_text(text.replace("/var/lib/hookbus", str(folder)))
    (folder / ".config" / "fish" / "completions").mkdir(parents=True)
    asyncio.run(_make_topics(config))
    return folder


async def _make_topics(file: Path) -> None:
    config = config_file.load(file)
    bus = build_bus.bus(config)
    await bus.open(build_bus.topics(config), build_bus.changelogs(config))
    await bus.close()
    journal = build_bus.journal_bus(config)
    await journal.open(TOPICS, CHANGELOGS)
    await journal.close()


@pytest.mark.parametrize(
    ("usage", "example"), list(_examples()), ids=lambda one: getattr(one, "line", "")
)
def test_an_example_of_the_help_does_something(
    usage: Usage, example: Example, folder: Path
) -> None:
    """It ends with a code that its help explains, and without a complaint if that is 0."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", example.line],
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode in usage.exits
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_the_version_is_that_of_the_distribution() -> None:
    """On stdout, alone."""
    done = command("--version")
    assert done.stdout.decode() == f"hookbus {version('hookbus')}\n"
    assert done.stderr == b""


def test_a_line_that_is_too_large_ends_a_publish_and_says_what_was_sent(folder: Path) -> None:
    """Exit code 1, for refused input: the lines before its batch, and none after them."""
    config = ("-c", str(folder / "limited.yaml"))
    text = (folder / "hookbus.yaml").read_text()
    limited = text.replace("bus.db", "limited.db").replace(
        "sqlite: {", "sqlite: {max_message: 1KiB, "
    )
    (folder / "limited.yaml").write_text(limited)
    lines = [b"%d" % number for number in range(500)]  # as many as go at once
    file = folder / "large.jsonl"
    file.write_bytes(b"\n".join([*lines, b"x" * 2000, b"after", b""]))
    done = command("publish", *config, "--ingress", "agents", str(file), code=1)
    assert done.stderr.splitlines()[0] == b"500"
    told = command("tail", *config, "--topic", "agents.hooks").stdout
    assert sorted(told.splitlines()) == sorted(lines)


@pytest.mark.parametrize("name", INPUT)
def test_a_dash_is_standard_input(name: str) -> None:
    """Every line of it is read."""
    session = SESSION.read_bytes()
    done = command(name, *INPUT[name], "-", stdin=session)
    assert len(done.stdout.splitlines()) == len(session.splitlines())


def test_a_dash_is_published_from_standard_input(folder: Path) -> None:
    """The number of lines is told."""
    arguments = ("-c", str(folder / "hookbus.yaml"), "--ingress", "agents", "-")
    assert command("publish", *arguments, stdin=b"{}\n{}\n").stderr == b"2\n"


ODD = b"\xff\xfe\n\x00\n\xed\xa0\x80\n" + b'{"a": "\xff"}' + b"\n\r\n\x1b[31m\n"


@pytest.mark.parametrize(
    ("name", "code"), [("check", 1), ("downlevel", 1), ("filter", 0), ("redact", 1)]
)
def test_input_that_is_no_utf8_is_handled(name: str, code: int) -> None:
    """Each such line is refused, unquoted."""
    done = command(name, *INPUT[name], stdin=ODD, code=code)
    assert b"Traceback" not in done.stderr
    assert b"\xff" not in done.stdout + done.stderr


def test_published_input_that_is_no_utf8_is_kept_as_it_is(folder: Path) -> None:
    """It is the router that judges."""
    config = ("-c", str(folder / "hookbus.yaml"))
    assert command("publish", *config, "--ingress", "agents", stdin=ODD).stderr == b"6\n"
    told = command("tail", *config, "--topic", "agents.hooks").stdout
    assert b"\xff\xfe\n" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("run", "--help"),
        ("help", "check"),
        ("--version",),
        ("schema",),
        ("completion", "bash"),
        *((name, *options, str(SESSION)) for name, options in INPUT.items()),
        ("plan", "-c", "CONFIG"),
        ("tail", "-c", "CONFIG", "--topic", "agents.hooks"),
        ("deadletters", "list", "-c", "CONFIG"),
        ("deadletters", "list", "-c", "CONFIG", "--counts"),
        ("failures", "list", "-c", "CONFIG"),
    ],
    ids=" ".join,
)
def test_a_reader_that_goes_away_ends_it_quietly(arguments: tuple[str, ...], folder: Path) -> None:
    """As in `hookbus check session.jsonl | head -n 1`, whatever it prints."""
    config = str(folder / "hookbus.yaml")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            [*HOOKBUS, *(config if word == "CONFIG" else word for word in arguments)],
            stdin=subprocess.DEVNULL,
            stdout=gone,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
        )
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.parametrize("name", INPUT)
def test_output_that_cannot_be_written_is_said_without_a_traceback(name: str) -> None:
    """A full disk is a fault while running."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*HOOKBUS, name, *INPUT[name], str(SESSION)], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 4
    assert done.stderr == b"OSError: No space left on device\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_fault_of_ours(closed: str) -> None:
    """Without input it can't work, and says so; where output can't go, it goes nowhere."""
    line = f"{' '.join(HOOKBUS)} check {'-' if '<' in closed else SESSION} {closed}"
    done = subprocess.run(["bash", "-c", line], capture_output=True)
    assert done.returncode == (4 if "<" in closed else 0)
    assert done.stderr == (b"OSError: Bad file descriptor\n" if closed == "<&-" else b"")


@pytest.mark.parametrize("name", [*INPUT, "publish", "tail"])
def test_ctrl_c_leaves_no_traceback(name: str, folder: Path, tmp_path: Path) -> None:
    """While it waits for input, or for more of a topic."""
    config = ("-c", str(folder / "hookbus.yaml"))
    arguments = {
        **INPUT,
        "publish": (*config, "--ingress", "agents"),
        "tail": (*config, "--topic", "agents.hooks", "--follow"),
    }[name]
    command("publish", *config, "--ingress", "agents", stdin=b"{}\n")
    shown = tmp_path / "shown"
    with (
        shown.open("wb") as out,
        subprocess.Popen(
            # whoever runs the tests in the background may have the signal ignored
            ["env", "--default-signal=INT", *HOOKBUS, name, *arguments],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process,
    ):
        until(lambda: shown.read_bytes() or _reads_input(process.pid), f"{name} waits")
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        assert process.stderr is not None
        assert process.stderr.read() == (b"0\n" if name == "publish" else b"")
    assert process.returncode == 130


def test_lines_are_published_as_they_come(folder: Path) -> None:
    """From a program that goes on writing."""
    config = ("-c", str(folder / "hookbus.yaml"))
    line = b'{"live": "as it comes"}'
    with subprocess.Popen(
        [*HOOKBUS, "publish", *config, "--ingress", "agents"], stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        until(
            lambda: line in command("tail", *config, "--topic", "agents.hooks").stdout,
            "the line is in the topic",
        )
    assert process.returncode == 0


_READ = {"x86_64": "0", "aarch64": "63"}[platform.machine()]
"""The number of the system call."""


def _reads_input(pid: int) -> bool:
    """Whether a thread of a process waits in a read of standard input."""
    calls = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/syscall")]
    return any(call[:2] == [_READ, "0x0"] for call in calls)
