"""The broker of the Compose file in a sandbox: `kafka:9092`, as other roots of it reach it.

Tansu stands in for it, or Apache Kafka itself, configured by the code that configures it in its
official image, from the environment of the Compose file, with the same paths writable.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from tests import brokers
from tests.deploy.composefile import mounts, tmpfs, tree
from tests.integration.deploy.sandbox import Process, Sandbox

SERVICE = tree()["services"]["kafka"]
ADDRESS = "kafka:9092"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_USER = "1000:1000"


def names(folder: Path) -> dict[str, Path]:
    """A mount that gives the services of the Compose file their names, and like an engine the host
    its own; all share an address."""
    file = folder / "hosts"
    known = ["localhost", socket.gethostname(), *tree()["services"]]
    file.write_text("".join(f"127.0.0.1 {name}\n" for name in known))
    return {"/etc/hosts": file}


@contextlib.contextmanager
def running(sandbox: Sandbox, folder: Path) -> Iterator[Process]:
    """The broker that HOOKBUS_TEST_BROKER names; it may not answer yet."""
    start = _apache if os.environ.get("HOOKBUS_TEST_BROKER") == "kafka" else _tansu
    with start(sandbox, folder) as process:
        yield process


def _tansu(sandbox: Sandbox, folder: Path) -> contextlib.AbstractContextManager[Process]:
    inside = "/opt/tansu"
    return sandbox.root(folder.name).start(
        [
            *(f"{inside}/tansu", "broker", "--storage-engine=memory://tansu/"),
            *("--listener-url=tcp://0.0.0.0:9092", f"--advertised-listener-url=tcp://{ADDRESS}"),
        ],
        {"PATH": _PATH},
        user=_USER,
        mounts={inside: brokers.tansu_binary().parent, **names(folder)},
        stderr=folder / "kafka",
    )


def _apache(sandbox: Sandbox, folder: Path) -> contextlib.AbstractContextManager[Process]:
    """What the official image does at its start, less its scripts: the wrapper writes the
    configuration from the environment and formats the storage, then the server starts."""
    (data,) = (mount.inside for mount in mounts(SERVICE))
    (folder / "data").mkdir()
    os.chown(folder / "data", *(int(number) for number in _USER.split(":")))
    (folder / "defaults").mkdir()
    (folder / "defaults/server.properties").touch()
    for name in ("log4j2.yaml", "tools-log4j2.yaml"):
        (folder / "defaults" / name).write_text("Configuration: {Loggers: {Root: {level: WARN}}}\n")
    java = "java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*'"
    wrapper = "kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker"
    final = "/opt/kafka/config"
    script = (
        f"{java} {wrapper} --mounted-configs-dir /mnt --final-configs-dir {final} && "
        f"exec {java} kafka.Kafka {final}/server.properties"
    )
    return sandbox.root(folder.name).start(
        ["sh", "-c", script],
        {"PATH": _PATH, **SERVICE["environment"]},
        user=_USER,
        mounts={
            data: folder / "data",
            "/etc/kafka/docker": folder / "defaults",
            "/opt/kafka/libs": brokers.jars(),
            **names(folder),
        },
        writable=[data],
        tmpfs=tmpfs(SERVICE),
        stderr=folder / "kafka",
    )
