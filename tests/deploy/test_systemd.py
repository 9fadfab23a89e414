"""What the systemd unit promises without being started."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from hookbus.router.configuration.config_file import load
from hookbus.router.configuration.units import Duration
from tests.deploy.containerfile import ROOT
from tests.deploy.unitfile import FILE, installation, settings

CONFIG = load(ROOT / "deploy/systemd/hookbus.yaml")
UNIT = settings()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_the_units_exposure_is_low():
    """By systemd's own measure: at most 1.2 of 10."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=12", FILE],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_service_has_time_to_settle_before_it_is_killed():
    """Its own grace period is the shorter one."""
    assert Duration.parse(UNIT["TimeoutStopSec"][0]) > CONFIG.shutdown_grace + 10


def test_a_reload_checks_the_configuration_that_is_run_before_it_asks_for_it():
    """The one that the service is started with."""
    (start,) = UNIT["ExecStart"]
    assert UNIT["ExecReload"] == [start.replace(" run ", " plan "), "/bin/kill -HUP $MAINPID"]


def test_the_credentials_are_those_that_the_configuration_refers_to():
    """By the path at which systemd puts them."""
    given = {
        f"/run/credentials/{FILE.name}/{one.partition(':')[0]}" for one in UNIT["LoadCredential"]
    }
    wanted = {sink.http.bearer.file for sink in CONFIG.sinks.values() if sink.http is not None}
    assert given == wanted
    sources = [one.partition(":")[2] for one in UNIT["LoadCredential"]]
    assert all(any(line.endswith(source) for line in installation()) for source in sources)


def test_the_service_writes_to_its_state_directory_alone():
    """The rest of the file system is read-only to it."""
    (name,) = UNIT["StateDirectory"]
    paths = [CONFIG.bus.sqlite.path, CONFIG.failures.journal]
    paths += [sink.file.path for sink in CONFIG.sinks.values() if sink.file is not None]
    assert all(path.startswith(f"/var/lib/{name}/") for path in paths)
    assert UNIT["ProtectSystem"] == ["strict"]


def test_the_user_of_the_service_is_the_one_that_is_made():
    """With a home that is its state."""
    lines = (ROOT / "deploy/systemd/hookbus.sysusers").read_text().splitlines()
    (made,) = [line.split() for line in lines if not line.startswith("#")]
    assert made[:2] == ["u", UNIT["User"][0]]
    assert made[-1] == f"/var/lib/{UNIT['StateDirectory'][0]}"
