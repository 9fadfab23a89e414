"""From a clone to a first event in Kafka, as the README tells somebody without Docker."""

from __future__ import annotations

import os
import re
import signal
import subprocess

from tests.deploy.containerfile import ROOT
from tests.integration.deploy.image import clone
from tests.processes import until

ENV = {"PATH": "/usr/local/base/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def test_the_commands_of_the_readme_show_a_first_event_without_an_engine(sandbox, base, tmp_path):
    """At most five, typed one after another into a shell in a fresh clone."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (block,) = (text for text in blocks if "tansu broker" in text)
    install, broker, run, publish, tail = block.splitlines()
    root = sandbox.root("newcomer", base)
    root.copy(clone(tmp_path / "clone"), "/checkout")
    root.build(["bash", "-ec", install], ENV, "/checkout")
    stderr = tmp_path / "stderr"
    inside = [*sandbox.enter("mount", "net"), "chroot", str(root.seen)]
    command = [*inside, "env", "--ignore-environment", "--chdir=/checkout", f"PATH={ENV['PATH']}"]
    with (
        stderr.open("wb") as log,
        subprocess.Popen(
            [*command, "bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            start_new_session=True,
        ) as shell,
    ):  # fmt: skip
        try:
            _type(shell, broker)
            _type(shell, run)
            until(lambda: '"message":"running"' in stderr.read_text(), stderr.read_text)
            _type(shell, publish)
            until(lambda: "\n24\n" in stderr.read_text(), stderr.read_text)
            _type(shell, tail)
            shown = [shell.stdout.readline() for _ in range(24)]
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    assert all(b'"dev.hookbus.capture":{"level":"metadata"}' in line for line in shown)


def _type(shell: subprocess.Popen[bytes], line: str) -> None:
    shell.stdin.write(line.encode() + b"\n")
    shell.stdin.flush()
