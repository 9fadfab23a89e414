"""Three Kafka nodes on loopback, of which any one may be killed."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.brokers import Broker, free_ports, java_command, log4j_properties

NODES = 3

_PROPERTIES = """
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.network.threads=2
num.io.threads=4
auto.create.topics.enable=false
min.insync.replicas=2
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
offsets.topic.num.partitions=3
offsets.topic.replication.factor=3
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
broker.session.timeout.ms=6000
log.index.size.max.bytes=1048576
"""


@contextlib.contextmanager
def cluster() -> Iterator[list[Broker]]:
    """Running nodes; `bootstrap` of each is its own, clients name all of them."""
    free = free_ports(2 * NODES)
    ports = list(zip(free[:NODES], free[NODES:], strict=True))
    voters = ",".join(f"{n}@127.0.0.1:{ctl}" for n, (_, ctl) in enumerate(ports, 1))
    with (
        tempfile.TemporaryDirectory(prefix="hookbus-cluster-") as name,
        contextlib.ExitStack() as s,
    ):
        nodes = []
        for node, (port, controller) in enumerate(ports, 1):
            folder = Path(name) / str(node)
            folder.mkdir()
            properties = folder / "server.properties"
            properties.write_text(
                _PROPERTIES.format(
                    node=node, voters=voters, port=port, controller=controller, data=folder / "data"
                )
            )
            log4j_properties(folder)
            java = java_command(folder)
            subprocess.run(
                [*java, "kafka.tools.StorageTool", "format", "-t", "aG9va2J1cy1jaGFvcy0wMQ", "-c",
                 str(properties)],
                check=True,
                capture_output=True,
            )  # fmt: skip
            broker = Broker(f"kafka-{node}", [*java, "kafka.Kafka", str(properties)], port, folder)
            s.callback(broker.kill)
            nodes.append(broker)
        for broker in nodes:
            broker.launch()
        for broker in nodes:
            broker.wait()
        yield nodes
