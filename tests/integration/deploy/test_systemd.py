"""The systemd unit, installed as deploy/README.md says, under a systemd of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.unitfile import FILE, installation, settings
from tests.integration.deploy.image import clone
from tests.integration.deploy.sandbox import Root, Sandbox

NEEDED = ("systemd-nspawn", "systemd-analyze")
pytestmark = pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"needs {NEEDED}")

ENV = {"PATH": "/usr/local/base/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
UNITS = "/etc/systemd/system"
PLAY = f"""\
[Unit]
DefaultDependencies=no
After={FILE.name} systemd-journald.service
[Service]
Type=oneshot
ExecStart=/bin/bash /play/script
ExecStopPost=/bin/systemctl poweroff --force --force
TimeoutStartSec=60s
"""
TARGET = f"""\
[Unit]
Wants={FILE.name} play.service systemd-journald.service
"""

BOOT = """\
umount --recursive "$0/dev" "$0/proc"
exec systemd-nspawn --quiet --directory="$0" --register=no --keep-unit --console=pipe --boot \\
  systemd.unit=play.target
"""


@pytest.fixture(scope="module")
def machine(sandbox: Sandbox, base: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """A machine on which the installation was carried out, but for what asks systemd."""
    root = sandbox.root("machine", base)
    root.copy(clone(tmp_path_factory.mktemp("systemd") / "clone"), "/checkout")
    *steps, last = installation()
    assert last == "systemctl enable --now hookbus"
    for step in steps:
        root.build(["bash", "-ec", step], {**ENV, "SIEM_TOKEN": "secret"}, "/checkout")
    return root


def test_systemd_has_nothing_to_say_of_the_installed_unit(machine):
    """Every setting is known, and every command is there."""
    assert machine.build(["systemd-analyze", "verify", f"{UNITS}/{FILE.name}"], ENV) == ""


def test_systemd_starts_reloads_and_stops_hookbus_and_gives_up_a_wrong_configuration(
    sandbox, machine, tmp_path
):
    """With everything that the unit forbids it; events are delivered meanwhile."""
    (tmp_path / "script").write_text((Path(__file__).with_name("systemd_play.sh")).read_text())
    (tmp_path / "play.service").write_text(PLAY)
    (tmp_path / "play.target").write_text(TARGET)
    machine.copy(tmp_path, "/play")
    machine.build(["sh", "-c", f"cp /play/play.* {UNITS}; : >/etc/machine-id"], ENV)
    done = subprocess.run(
        [*sandbox.enter("mount", "net"), "unshare", "--mount", "sh", "-ec", BOOT, machine.seen],
        capture_output=True,
        timeout=120,
    )
    said = machine.build(["cat", "/play/said"], ENV)
    found = dict(line.split("=", 1) for line in said.splitlines())
    assert found == {
        "CapBnd": "0000000000000000",
        "NoNewPrivs": "1",
        "Seccomp": "2",
        "delivered": "24",
        "process metrics": "1",
        "reload": "0",
        "reload of a wrong one": "1",
        "after the stop": "inactive success 0",
        "with a wrong one": f"failed exit-code {settings()['RestartPreventExitStatus'][0]} 0",
    }, done.stderr
