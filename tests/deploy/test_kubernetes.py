"""What the Kubernetes manifests promise without a cluster."""

from __future__ import annotations

import re
import shutil

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from hookbus.router import build_bus
from hookbus.router.configuration.config_file import parse
from hookbus.router.replays import build_replay
from tests.deploy.containerfile import ROOT, stages
from tests.deploy.locks import pyproject
from tests.deploy.manifests import (
    container,
    example_secrets,
    files,
    of_kind,
    pod,
    rendered,
    secret_keys,
)

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
FINAL = stages()[-1]
CONFIG_PATH = FINAL.last("CMD").words[-1]
KUSTOMIZATION = (ROOT / "deploy/kubernetes/kustomization.yaml").read_text()
OLDEST, NEWEST = "1.27", "1.34"


@pytest.fixture(scope="module")
def manifests():
    return rendered()


@pytest.fixture(scope="module")
def workloads(manifests):
    """The Deployment and the StatefulSet, by the component of their pods."""
    found = of_kind(manifests, "Deployment", "StatefulSet")
    return {one["metadata"]["labels"]["app.kubernetes.io/component"]: one for one in found}


@pytest.fixture(scope="module")
def config(manifests, workloads):
    """The configuration that the pods see."""
    return parse(files(workloads["sinks"], manifests)[CONFIG_PATH])


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_schemas_of_old_and_new_clusters_allow_every_manifest(manifests, version):
    """With no member that they don't know."""
    assert len(manifests) == 9
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_an_unknown_member_would_be_noticed(manifests):
    """The judge is a strict one."""
    (service,) = of_kind(manifests, "Service")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**service, "spce": {}}, NEWEST, strict=True)


def test_everything_is_in_one_namespace_that_enforces_the_restricted_profile(manifests):
    """The cluster itself refuses a pod that asks for more."""
    (namespace,) = of_kind(manifests, "Namespace")
    name = namespace["metadata"]["name"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    others = [one for one in manifests if one is not namespace]
    assert {one["metadata"]["namespace"] for one in others} == {name}


def test_the_router_is_a_deployment_and_what_keeps_a_journal_has_a_volume(workloads):
    """A rescheduled pod of sinks finds its journal again."""
    assert {name: one["kind"] for name, one in workloads.items()} == {
        "router": "Deployment",
        "sinks": "StatefulSet",
    }
    (claim,) = workloads["sinks"]["spec"]["volumeClaimTemplates"]
    mounted = {m["name"]: m["mountPath"] for m in container(workloads["sinks"])["volumeMounts"]}
    assert mounted[claim["metadata"]["name"]] == FINAL.last("VOLUME").words[0]


def test_a_pod_can_do_no_more_than_the_restricted_profile_allows(workloads):
    """As the user of the image, and with nothing writable but its volumes."""
    uid, gid = (int(number) for number in FINAL.last("USER").words[0].split(":"))
    for workload in workloads.values():
        rights = pod(workload)["securityContext"]
        assert rights["runAsNonRoot"] is True
        assert (rights["runAsUser"], rights["runAsGroup"], rights["fsGroup"]) == (uid, gid, gid)
        assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container(workload)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod(workload)["automountServiceAccountToken"] is False


def test_the_pods_together_run_every_part_of_the_configuration_once(workloads, config):
    """No sink is forgotten, and the router isn't run twice."""
    parts = []
    for workload in workloads.values():
        args = container(workload)["args"]
        assert args[:3] == list(FINAL.last("CMD").words)
        assert args[3::2] == ["--only"] * len(args[4::2])
        parts += args[4::2]
    assert sorted(parts) == sorted(["router", *(f"sink:{name}" for name in config.sinks)])


def test_the_topics_that_have_to_be_there_are_listed(config):
    """Those that pods and replays ask for by name; changelogs are compacted."""
    listed = re.findall(r"^#   ([a-z][\w.]*\.[\w. ]*)(#.*)?$", KUSTOMIZATION, re.MULTILINE)
    notes = {topic: note for names, note in listed for topic in names.split()}
    changelogs = build_bus.changelogs(config) | build_replay.changelogs(config)
    assert notes.keys() == {*build_bus.topics(config), *build_replay.topics(config), *changelogs}
    assert {topic: note for topic, note in notes.items() if note} == {
        changelog: f"# compacted, with as many partitions as {topic}"
        for changelog, topic in changelogs.items()
    }


def test_the_probes_ask_what_answers_their_question(workloads, config):
    """Restart by /healthz, traffic and rollouts by /readyz, on the port of `metrics.listen`."""
    host, _, port = config.metrics.listen.rpartition(":")
    assert host == "0.0.0.0"  # noqa: S104 - the kubelet asks from outside
    for workload in workloads.values():
        only = container(workload)
        assert only["ports"] == [{"name": "metrics", "containerPort": int(port)}]
        asked = {
            kind: only[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")
        }
        assert {kind: get["path"] for kind, get in asked.items()} == {
            "startup": "/healthz",
            "liveness": "/healthz",
            "readiness": "/readyz",
        }
        assert {get["port"] for get in asked.values()} == {"metrics"}


def test_a_pod_has_time_to_settle_before_it_is_killed(workloads, config):
    """Its own grace period is the shorter one."""
    for workload in workloads.values():
        assert pod(workload)["terminationGracePeriodSeconds"] > config.shutdown_grace + 10


def test_every_secret_that_a_pod_names_is_in_the_example(workloads):
    """And the example has none that no pod names."""
    expected = {(name, key) for name, keys in example_secrets().items() for key in keys}
    named = {pair for workload in workloads.values() for pair in secret_keys(workload)}
    whole = {
        volume["secret"]["secretName"]
        for workload in workloads.values()
        for volume in pod(workload)["volumes"]
        if "secret" in volume and "items" not in volume["secret"]
    }
    assert named | {(name, key) for name, key in expected if name in whole} == expected


def test_every_reference_of_the_configuration_is_there_in_the_pods_that_need_it(
    manifests, workloads, config
):
    """Variables and files of Kafka in all pods, those of the backends where the sinks run."""
    kafka = config.bus.kafka
    for workload in workloads.values():
        variables = {variable["name"] for variable in container(workload)["env"]}
        assert variables == {kafka.sasl.password.env}
        assert kafka.tls.ca_file in files(workload, manifests)
    tokens = {sink.http.bearer.file for sink in config.sinks.values() if sink.http}
    assert tokens <= files(workloads["sinks"], manifests).keys()
    assert not tokens & files(workloads["router"], manifests).keys()


def test_the_image_has_the_version_of_the_project(workloads):
    """In the manifests as they are, and as they are sent."""
    version = pyproject()["project"]["version"]
    images = {container(workload)["image"] for workload in workloads.values()}
    assert {image.rpartition(":")[2] for image in images} == {version}
    for name in ("router", "sinks"):
        text = (ROOT / f"deploy/kubernetes/{name}.yaml").read_text()
        assert f"image: hookbus:{version}\n" in text


def test_the_networks_let_out_only_to_names_kafka_and_backends(manifests, config):
    """The router reaches no backend; in comes nothing but the question for metrics."""
    by_name = {one["metadata"]["name"]: one["spec"] for one in of_kind(manifests, "NetworkPolicy")}
    everyone, sinks = by_name["hookbus"], by_name["hookbus-sinks"]
    broker = int(config.bus.kafka.bootstrap_servers.rpartition(":")[2])
    assert _ports(everyone["egress"]) == {53, broker}
    assert _ports(everyone["ingress"]) == {"metrics"}
    assert set(everyone["policyTypes"]) == {"Ingress", "Egress"}
    assert _ports(sinks["egress"]) == {443}
    assert sinks["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "sinks"


def test_selectors_find_the_pods_and_budgets_spare_one(manifests, workloads):
    """A label that is changed in one place only would select nothing."""
    labels = {
        name: one["spec"]["template"]["metadata"]["labels"] for name, one in workloads.items()
    }
    for name, workload in workloads.items():
        assert workload["spec"]["selector"]["matchLabels"].items() <= labels[name].items()
    budgets = of_kind(manifests, "PodDisruptionBudget")
    assert {one["spec"]["maxUnavailable"] for one in budgets} == {1}
    # A backend or a bus that is away makes pods unready; a node has to be drained all the same.
    assert {one["spec"]["unhealthyPodEvictionPolicy"] for one in budgets} == {"AlwaysAllow"}
    chosen = [one["spec"]["selector"]["matchLabels"] for one in budgets]
    assert [name for name in labels if labels[name] in chosen] == list(labels)
    (service,) = of_kind(manifests, "Service")
    assert all(service["spec"]["selector"].items() <= one.items() for one in labels.values())
    assert workloads["sinks"]["spec"]["serviceName"] == service["metadata"]["name"]


def test_the_monitor_scrapes_the_service_under_the_job_that_the_rules_expect(manifests):
    """The job of a ServiceMonitor is the name of the Service."""
    (monitor,) = of_kind(rendered("monitoring"), "ServiceMonitor")
    (service,) = of_kind(manifests, "Service")
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["path"] == "/metrics"
    assert monitor["metadata"]["namespace"] == service["metadata"]["namespace"]
    yaml = YAML(typ="safe", pure=True)
    scraped = yaml.load(ROOT / "deploy/prometheus/prometheus.yml")["scrape_configs"]
    assert [job["job_name"] for job in scraped] == [service["metadata"]["name"]]


def test_the_rules_of_the_operator_are_those_of_prometheus():
    """`make rules` copies them."""
    (rule,) = of_kind(rendered("monitoring"), "PrometheusRule")
    rules = YAML(typ="safe", pure=True).load(ROOT / "deploy/prometheus/rules.yml")
    assert rule["spec"] == rules
    assert rule["apiVersion"] == "monitoring.coreos.com/v1"


def _ports(rules):
    return {port["port"] for rule in rules for port in rule["ports"]}
