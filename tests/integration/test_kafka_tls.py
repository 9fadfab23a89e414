"""TLS and logins on Apache Kafka: what works, and what a process says of what doesn't."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acls import Acl, grant
from tests.brokers import USERS, Broker
from tests.certificates import Authority
from tests.integration.secured import Secured
from tests.processes import Processes, Setup, publish, stream, until

pytestmark = pytest.mark.kafka

MUTUAL: dict[str, Any] = {"security": "SSL", "sasl": None}


def configured(bus: Secured, folder: Path) -> Setup:
    """A router alone."""
    setup = Setup(bus, folder)
    setup.route("siem")
    setup.write()
    return setup


def refusal(setup: Setup, processes: Processes) -> str:
    """Why the start is refused, with exit code 3."""
    router = processes.run(setup, "--only", "router")
    assert router.wait() == 3, router.stderr
    (error,) = [line for line in router.logs if line["level"] == "error"]
    return str(error["why"])


def test_a_broker_that_is_not_trusted_ends_the_start(
    kafka: Broker, tmp_path: Path, processes: Processes
) -> None:
    """Its authority has to be one of ours, and its certificate has to be for the name we asked."""
    strangers = {"ca_file": Authority(tmp_path).file}
    setup = configured(Secured(kafka, USERS[-1], tls=strangers), tmp_path)
    assert "is not trusted" in refusal(setup, processes)
    elsewhere = kafka.sasl_tls.replace("127.0.0.1", "localhost")
    setup = configured(Secured(kafka, USERS[-1], bootstrap_servers=elsewhere), tmp_path)
    assert "is not trusted: Hostname mismatch" in refusal(setup, processes)


def test_a_refused_login_ends_the_start(
    kafka: Broker, tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the password is nowhere."""
    monkeypatch.setenv("HOOKBUS_TEST_PASSWORD", "not-that-one")
    setup = configured(Secured(kafka, USERS[-1]), tmp_path)
    assert refusal(setup, processes) == "the login: SaslAuthenticationFailed"
    assert "not-that-one" not in (tmp_path / "run-0.err").read_text()


def test_a_client_certificate_is_a_login(
    kafka: Broker, tmp_path: Path, processes: Processes
) -> None:
    """The principal is its subject; a client without one waits, and says what may be missing."""
    certificate, key = Authority(kafka.folder).issue("hookbus-client")
    tls = {"ca_file": kafka.ca_file, "cert_file": certificate, "key_file": key}
    address = {"bootstrap_servers": kafka.tls, **MUTUAL}
    setup = configured(Secured(kafka, "", **address, tls=tls), tmp_path)
    everything = [("topic", operation) for operation in ("Create", "Read", "Write")]
    grant(
        kafka.bootstrap,
        [
            ("CN=hookbus-client", Acl(resource, "*", operation))
            for resource, operation in [*everything, ("group", "Read")]
        ],
    )
    publish(setup, stream(3))
    router = processes.run(setup, "--only", "router").ready()
    until(lambda: router.metrics().value("hookbus_events_total", type="user.message.inbound") == 3,
          "the events are routed")  # fmt: skip
    router.stop()
    setup = configured(Secured(kafka, "", **address), tmp_path)
    waiting = processes.run(setup, "--only", "router")
    line = until(lambda: waiting.logged("bus unavailable, retrying"), "a warning")
    assert f"{kafka.tls}: hangs up" in line["why"]
    assert "client certificate" in line["why"]
    waiting.stop()


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it(
    kafka: Broker, tmp_path: Path, processes: Processes
) -> None:
    """A service has no terminal."""
    certificate, key = Authority(tmp_path).issue("hookbus-client")
    locked = str(tmp_path / "locked.key")
    command = ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:x", "-out", locked]
    subprocess.run(command, check=True)
    tls = {"ca_file": kafka.ca_file, "cert_file": certificate, "key_file": locked}
    setup = configured(Secured(kafka, "", bootstrap_servers=kafka.tls, **MUTUAL, tls=tls), tmp_path)
    assert refusal(setup, processes).startswith("TLS files can't be used")
    assert "pass phrase" not in (tmp_path / "run-0.err").read_text()
