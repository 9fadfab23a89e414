"""The containers of the Kubernetes manifests, started as they say, without a cluster."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.deploy.manifests import container, example_secrets, files, of_kind, pod, rendered
from tests.integration.deploy.broker import ADDRESS, names

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl"),
    pytest.mark.skipif("HOOKBUS_TEST_BROKER" in os.environ, reason="no other than with Tansu"),
]
CONFIG = "/etc/hookbus/hookbus.yaml"
ASK = (
    "import http.client as h, sys; c = h.HTTPConnection('127.0.0.1', int(sys.argv[2]), timeout=4); "
    "c.request('GET', sys.argv[1]); raise SystemExit(c.getresponse().status != 200)"
)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_pod_starts_with_what_it_mounts_answers_its_probes_and_ends_in_time(
    kind, kafka, image, tmp_path
):
    """Its user, arguments, variables and files are the manifest's; only the brokers are others."""
    manifests = rendered()
    (workload,) = of_kind(manifests, kind)
    only = container(workload)
    seen = {
        path: _written(tmp_path / f"file-{number}", text)
        for number, (path, text) in enumerate(files(workload, manifests).items())
    }
    _connect_elsewhere(seen[CONFIG])
    for template in workload["spec"].get("volumeClaimTemplates", []):
        (mount,) = (m for m in only["volumeMounts"] if m["name"] == template["metadata"]["name"])
        seen[mount["mountPath"]] = image.volume(image.volumes[0], tmp_path / "claim")
    with image.run(
        tmp_path / "stderr", *only["args"], mounts=seen | names(tmp_path), env=_variables(only)
    ) as process:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            process.healthy(["python", "-c", ASK, *_question(only, probe)])
        assert process.stop(pod(workload)["terminationGracePeriodSeconds"]) == 0, process.stderr
    parts = [word for word in only["args"] if word == "router" or word.startswith("sink:")]
    (running,) = (line for line in _lines(process.stderr) if line["message"] == "running")
    assert set(parts) <= set(running["loops"])


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _connect_elsewhere(config: Path) -> None:
    """The brokers of the sandbox ask for no password, and have no topics yet."""
    tree = YAML(typ="safe", pure=True).load(config)
    tree["bus"] = {
        "kafka": {"bootstrap_servers": ADDRESS},
        "create_topics": {"partitions": 2},
    }
    config.write_text(json.dumps(tree))


def _variables(only: dict[str, object]) -> dict[str, str]:
    references = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in only["env"]}
    return {name: example_secrets()[key["name"]][key["key"]] for name, key in references.items()}


def _question(only, probe: str) -> list[str]:
    get = only[probe]["httpGet"]
    (port,) = (one["containerPort"] for one in only["ports"] if one["name"] == get["port"])
    return [get["path"], str(port)]


def _lines(stderr: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in stderr.splitlines()]
