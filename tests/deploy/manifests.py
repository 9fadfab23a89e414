"""The Kubernetes manifests as the cluster gets them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML

from tests.deploy.containerfile import ROOT

FOLDER = ROOT / "deploy/kubernetes"
Manifest = dict[str, Any]


def rendered(folder: str = ".") -> list[Manifest]:
    """What `kubectl apply -k` would send."""
    done = subprocess.run(
        ["kubectl", "kustomize", FOLDER / folder], check=True, capture_output=True, text=True
    )
    return list(YAML(typ="safe", pure=True).load_all(done.stdout))


def of_kind(manifests: list[Manifest], *kinds: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] in kinds]


def example_secrets() -> dict[str, Mapping[str, str]]:
    """The Secrets that the pods expect, with their keys."""
    documents = YAML(typ="safe", pure=True).load_all(FOLDER / "secret.example.yaml")
    return {secret["metadata"]["name"]: secret["stringData"] for secret in documents}


def pod(workload: Manifest) -> Manifest:
    found: Manifest = workload["spec"]["template"]["spec"]
    return found


def container(workload: Manifest) -> Manifest:
    """The one container of a workload's pods."""
    (found,) = pod(workload)["containers"]
    return found  # type: ignore[no-any-return]


def secret_keys(workload: Manifest) -> Iterator[tuple[str, str]]:
    """The Secrets and keys that a workload names, in its environment and in its volumes."""
    for variable in container(workload)["env"]:
        reference = variable["valueFrom"]["secretKeyRef"]
        yield reference["name"], reference["key"]
    for volume in pod(workload)["volumes"]:
        if "secret" in volume:
            for item in volume["secret"].get("items", []):
                yield volume["secret"]["secretName"], item["key"]


def files(workload: Manifest, manifests: list[Manifest]) -> dict[str, str]:
    """The files that a workload's container sees in its ConfigMaps and Secrets, and their text."""
    maps = {one["metadata"]["name"]: one["data"] for one in of_kind(manifests, "ConfigMap")}
    seen = {}
    paths = {mount["name"]: mount["mountPath"] for mount in container(workload)["volumeMounts"]}
    for volume in pod(workload)["volumes"]:
        if "configMap" in volume:
            held = maps[volume["configMap"]["name"]]
        elif "secret" in volume:
            held = example_secrets()[volume["secret"]["secretName"]]
            items = volume["secret"].get("items")
            held = {item["path"]: held[item["key"]] for item in items} if items else held
        else:
            continue
        seen |= {f"{paths[volume['name']]}/{name}": text for name, text in held.items()}
    return seen
