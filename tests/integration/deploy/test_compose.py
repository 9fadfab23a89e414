"""The services of the Compose file, started as it says, without an engine."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookbus.router.configuration.units import Duration
from tests.deploy.composefile import mounts, tmpfs, tree
from tests.deploy.containerfile import ROOT
from tests.integration.deploy.broker import names
from tests.integration.deploy.image import Image
from tests.integration.deploy.sandbox import Process

pytestmark = pytest.mark.kafka

SERVICES = tree()["services"]
COMPOSE = "docker compose -f deploy/compose/compose.yaml "
COMMANDS = re.findall(
    rf"^{re.escape(COMPOSE)}(.+)$", (ROOT / "README.md").read_text(), re.MULTILINE
)


@pytest.fixture
def hookbus(kafka: Process, image: Image, tmp_path: Path) -> Iterator[Process]:
    """hookbus beside it, healthy."""
    seen = names(tmp_path)
    for mount in mounts(SERVICES["hookbus"]):
        file = isinstance(mount.source, Path)
        seen[mount.inside] = mount.source if file else image.volume(mount.inside, tmp_path / "data")
    with image.run(tmp_path / "stderr", mounts=seen) as process:
        process.until(lambda: '"message":"running"' in process.stderr)  # its broker is healthy
        yield process.healthy(image.health)


def test_the_commands_of_the_readme_bring_an_event_to_kafka_and_show_it(hookbus, tmp_path):
    """After `up`, an event that is published comes out of a topic, and of a sink, at its level;
    and hookbus stops in order within the time that it is given."""
    up, publish, tail = COMMANDS
    assert up.startswith("up ")
    command, _, session = publish.partition(" <")
    sent = (ROOT / session.strip()).read_bytes()
    done = hookbus.execute(_inside(command), sent)
    assert done.returncode == 0, done.stderr
    archive = tmp_path / "data/archive.jsonl"
    hookbus.until(
        lambda: archive.exists() and archive.read_bytes().count(b"\n") == sent.count(b"\n")
    )
    shown = hookbus.execute([word for word in _inside(tail) if word != "--follow"])
    assert shown.stdout.count(b"\n") == sent.count(b"\n")
    assert b"[withheld]" in shown.stdout
    assert hookbus.stop(Duration.parse(SERVICES["hookbus"]["stop_grace_period"])) == 0


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Prometheus")
def test_prometheus_becomes_healthy_with_what_it_mounts(sandbox, tmp_path):
    """With its command, its rules and its own health check."""
    service = SERVICES["prometheus"]
    seen = names(tmp_path)
    (tmp_path / "data").mkdir(mode=0o777)
    (tmp_path / "data").chmod(0o777)
    writable = []
    for mount in mounts(service):
        file = isinstance(mount.source, Path)
        seen[mount.inside] = mount.source if file else tmp_path / "data"
        writable += [mount.inside] if mount.writable else []
    with sandbox.root("prometheus").start(
        ["prometheus", *service["command"]],
        {"PATH": "/usr/bin:/bin"},
        user="65534:65534",
        mounts=seen,
        writable=writable,
        tmpfs=tmpfs(service),
        stderr=tmp_path / "stderr",
    ) as process:
        process.healthy(service["healthcheck"]["test"][1:])
        assert process.stop() == 0


def _inside(command: str) -> list[str]:
    """What `docker compose exec` runs in the service."""
    words = shlex.split(command)
    return words[words.index("hookbus") + 1 :]
