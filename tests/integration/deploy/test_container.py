"""The container image as an engine would run it: as its user, with only its data writable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.containerfile import ROOT
from tests.deploy.locks import pins, plain, pyproject, version
from tests.integration.deploy.image import Image
from tests.integration.deploy.sandbox import Process

EXAMPLE = ROOT / "deploy/examples/one-machine.yaml"
CONFIG = "/etc/hookbus/hookbus.yaml"
DATA = "/var/lib/hookbus"
SESSION = ROOT / "router/demo_session.jsonl"


@pytest.fixture
def container(image: Image, tmp_path: Path) -> Iterator[Process]:
    """The image with the configuration for one machine, healthy."""
    mounts = {CONFIG: EXAMPLE, DATA: image.volume(DATA, tmp_path / "data")}
    with image.run(tmp_path / "stderr", mounts=mounts) as process:
        yield process.healthy(image.health)


def test_a_container_with_a_read_only_root_delivers_events(container, tmp_path):
    """A new volume is writable for its user, and the command is in the image."""
    publish = ["hookbus", "publish", "-c", CONFIG, "--ingress", "agents"]
    lines = SESSION.read_bytes()
    assert container.execute(publish, lines).returncode == 0, container.stderr
    archive, sent = tmp_path / "data/archive.jsonl", len(lines.splitlines())
    container.until(lambda: archive.exists() and archive.read_bytes().count(b"\n") >= sent)
    assert archive.read_bytes().count(b"\n") == sent


def test_a_container_has_neither_privileges_nor_a_writable_root(container, image):
    """Its user has no capabilities and can write to /tmp and the volume alone."""
    tried = "touch /tmp/here {0}/here && ! touch /here /opt/hookbus/here /etc/hookbus/here"
    done = container.execute(["sh", "-c", tried.format(DATA)])
    assert done.returncode == 0, done.stderr
    status = container.execute(["cat", "/proc/1/status"]).stdout.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["10001"] * 4
    assert {fields[name] for name in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
    assert fields["NoNewPrivs"] == "1"


def test_a_container_holds_what_the_lock_names_and_nothing_else(container):
    """Its Python has hookbus and the locked versions, and no installer."""
    code = (
        "import importlib.metadata as m, platform; print(platform.python_version(), "
        "*(f'{d.name}=={d.version}' for d in m.distributions()))"
    )
    python, *found = container.execute(["python", "-c", code]).stdout.decode().split()
    inside = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
    wanted = [
        pin for pin in pins("requirements.lock") if not pin.marker or pin.marker.evaluate(inside)
    ]
    expected = {plain(pin.name): version(pin) for pin in wanted}
    expected["hookbus"] = pyproject()["project"]["version"]
    pairs = (one.split("==") for one in found)
    assert {plain(name): number for name, number in pairs} == expected


def test_the_first_process_of_a_container_ends_in_order_on_sigterm(container):
    """The signal reaches hookbus itself, though it is process 1."""
    container.until(lambda: '"message":"running"' in container.stderr)
    assert container.stop() == 0, container.stderr
    assert '"message":"stopped"' in container.stderr


def test_the_health_check_of_an_image_fails_without_an_answer(container, image):
    """It says what it looks at."""
    elsewhere = [part.replace("9464", "9465") for part in image.health]
    assert container.execute(elsewhere).returncode != 0
