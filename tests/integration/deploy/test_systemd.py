"""The systemd unit: installed as deploy/README.md says, judged by systemd, its commands run.

systemd itself isn't the first process here, so what it would do around the commands isn't.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.deploy.unitfile import FILE, command, installation, settings
from tests.integration.deploy.image import clone
from tests.integration.deploy.sandbox import Root, Sandbox

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")

ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
CREDENTIALS = f"/run/credentials/{FILE.name}"
STATE = f"/var/lib/{settings()['StateDirectory'][0]}"


@pytest.fixture(scope="module")
def machine(sandbox: Sandbox, base: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """A machine on which every command was carried out, but for those that ask systemd."""
    root = sandbox.root("machine", base)
    root.copy(clone(tmp_path_factory.mktemp("systemd") / "clone"), "/checkout")
    *steps, last = installation()
    assert last.startswith("systemctl ")
    path = f"/usr/local/base/bin:{ENV['PATH']}"
    for step in steps:
        root.build(["bash", "-ec", step], {"PATH": path, "SIEM_TOKEN": "secret"}, "/checkout")
    return root


def test_systemd_has_nothing_to_say_of_the_installed_unit(machine):
    """Every setting is known, and every command is there."""
    assert (
        machine.build(["systemd-analyze", "verify", f"/etc/systemd/system/{FILE.name}"], ENV) == ""
    )


def test_the_commands_of_the_unit_check_start_reload_and_stop_hookbus(machine, tmp_path):
    """As its user, with its state and its credentials, and nothing else to write to."""
    user, group = (settings()[name][0] for name in ("User", "Group"))
    ids = machine.build(["sh", "-c", f"id -u {user}; getent group {group} | cut -d: -f3"], ENV)
    uid, gid = ids.split()
    for folder in ("state", "credentials"):
        (tmp_path / folder).mkdir()
    shutil.chown(tmp_path / "state", int(uid), int(gid))
    for one in settings()["LoadCredential"]:
        name, _, source = one.partition(":")
        (tmp_path / "credentials" / name).write_text(machine.build(["cat", source], ENV))
    start = {
        "env": ENV,
        "user": f"{uid}:{gid}",
        "mounts": {STATE: tmp_path / "state", CREDENTIALS: tmp_path / "credentials"},
        "writable": [STATE],
    }
    with machine.start(command("ExecStartPre"), **start, stderr=tmp_path / "plan") as plan:
        assert plan.wait() == 0, plan.stderr
    with machine.start(command("ExecStart"), **start, stderr=tmp_path / "stderr") as service:
        service.until(lambda: '"message":"running"' in service.stderr)
        assert service.execute(command("ExecReload", MAINPID="1")).returncode == 0
        service.until(lambda: '"message":"configuration unchanged"' in service.stderr)
        assert service.stop() == 0, service.stderr


def test_a_wrong_configuration_ends_with_the_code_that_stops_restarts(machine, tmp_path):
    """systemd would not try again."""
    wrong = tmp_path / "hookbus.yaml"
    wrong.write_text("bus: {}\n")
    path = Path(command("ExecStartPre")[-1])
    with machine.start(
        command("ExecStartPre"), ENV, user="65534:65534", mounts={str(path): wrong},
        stderr=tmp_path / "stderr",
    ) as plan:  # fmt: skip
        assert str(plan.wait()) == settings()["RestartPreventExitStatus"][0], plan.stderr
