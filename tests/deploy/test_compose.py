"""What the Compose file promises without being started."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from compose_spec import PyOptions
from ruamel.yaml import YAML

from hookbus.router.configuration.config_file import load
from hookbus.router.configuration.units import Duration
from tests.deploy.composefile import FILE, mounts, published, tmpfs, tree
from tests.deploy.containerfile import ROOT, stages
from tests.deploy.locks import pyproject

TREE = tree()
SERVICES = TREE["services"]
CONFIG = load(ROOT / "deploy/compose/hookbus.yaml")
each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())


def seen(service: str) -> dict[str, object]:
    """What a service sees at each path."""
    return {mount.inside: mount.source for mount in mounts(SERVICES[service])}


def test_the_compose_specification_allows_the_file():
    """Every key and value of it."""
    options = PyOptions()
    options.apply_merge = True
    options.from_yaml(FILE.read_text()).validate()


def test_a_misspelt_key_would_be_noticed():
    """The judge is a strict one."""
    options = PyOptions()
    options.apply_merge = True
    with pytest.raises(ValueError, match="readonly"):
        options.from_yaml(FILE.read_text().replace("read_only", "readonly"))


@each_service
def test_a_service_can_change_nothing_but_its_volumes_and_has_no_privileges(service):
    """Whatever is in its image."""
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in tmpfs(service)  # noqa: S108 - inside
    assert not {"privileged", "cap_add", "network_mode", "pid", "user"} & service.keys()


@each_service
def test_what_a_service_mounts_is_a_named_volume_or_there_and_read_only(service):
    """A file that isn't there would become a folder."""
    for mount in mounts(service):
        if isinstance(mount.source, str):
            assert mount.source in TREE["volumes"]
        else:
            assert mount.source.exists(), mount.source
            assert not mount.writable


@each_service
def test_a_service_is_published_on_this_machine_alone(service):
    """Nothing asks for a password."""
    assert all(
        address.startswith("127.0.0.1:") and address.endswith(f":{port}")
        for port, address in published(service).items()
    )


@each_service
def test_an_image_has_a_full_version(service):
    """Never `latest`, and no moving tag."""
    assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+\.\d+", service["image"])


@each_service
def test_a_service_waits_until_what_it_needs_is_healthy(service):
    """And that can tell."""
    for name, needed in service.get("depends_on", {}).items():
        assert needed == {"condition": "service_healthy"}
        assert "healthcheck" in SERVICES[name] or name == "hookbus"


def test_the_image_of_hookbus_is_the_one_that_is_built_here():
    """From the root of the checkout, and tagged with its version; its health check is its own."""
    service = SERVICES["hookbus"]
    assert service["image"] == f"hookbus:{pyproject()['project']['version']}"
    assert (FILE.parent / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).is_file()
    assert stages()[-1].last("HEALTHCHECK").words[0] == "CMD"


def test_the_broker_is_of_the_version_that_the_tests_use():
    """What is tried is what is tested."""
    pom = ElementTree.parse(ROOT / "tests/integration/kafka/pom.xml")  # noqa: S314 - ours
    tested = pom.findtext(".//{*}dependency/{*}version")
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{tested}"


def test_hookbus_connects_to_where_the_broker_advertises_itself():
    """Inside, by the name of the service; outside, by the published port."""
    advertised = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    inside, outside = (one.partition("://")[2] for one in advertised.split(","))
    assert CONFIG.bus.kafka is not None
    assert CONFIG.bus.kafka.bootstrap_servers == inside
    assert published(SERVICES["kafka"]).keys() == {int(outside.rpartition(":")[2])}
    assert outside.startswith("localhost:")


def test_hookbus_has_time_to_settle_before_it_is_killed():
    """Its own grace period is the shorter one."""
    assert Duration.parse(SERVICES["hookbus"]["stop_grace_period"]) > CONFIG.shutdown_grace + 10


def test_hookbus_writes_to_its_volume_alone_and_is_asked_at_its_port():
    """As the image expects."""
    (data,) = stages()[-1].last("VOLUME").words
    assert seen("hookbus") == {
        "/etc/hookbus/hookbus.yaml": ROOT / "deploy/compose/hookbus.yaml",
        data: "hookbus",
    }
    assert "/etc/hookbus/hookbus.yaml" in stages()[-1].last("CMD").words
    paths = [sink.file.path for sink in CONFIG.sinks.values() if sink.file is not None]
    assert all(path.startswith(f"{data}/") for path in [*paths, CONFIG.failures.journal])
    port = int(CONFIG.metrics.listen.rpartition(":")[2])
    assert published(SERVICES["hookbus"]).keys() == {port}
    assert str(port) in stages()[-1].last("HEALTHCHECK").words[-1]


def test_prometheus_finds_its_configuration_its_rules_and_hookbus():
    """At the paths that its command and its configuration name."""
    files = seen("prometheus")
    path = "/etc/prometheus/prometheus.yml"
    assert f"--config.file={path}" in SERVICES["prometheus"]["command"]
    config = YAML(typ="safe", pure=True).load(files[path])
    assert all(f"/etc/prometheus/{name}" in files for name in config["rule_files"])
    (job,) = (job for job in config["scrape_configs"] if job["job_name"] == "hookbus")
    port = int(CONFIG.metrics.listen.rpartition(":")[2])
    assert [(one["names"], one["port"]) for one in job["dns_sd_configs"]] == [(["hookbus"], port)]


def test_grafana_finds_its_dashboard_and_prometheus():
    """By what is provisioned."""
    files = seen("grafana")
    provisioning = files["/etc/grafana/provisioning"]
    yaml = YAML(typ="safe", pure=True)
    folders = [
        provider["options"]["path"]
        for path in provisioning.glob("dashboards/*.y*ml")
        for provider in yaml.load(path)["providers"]
    ]
    assert [f"{folder}/hookbus.json" in files for folder in folders] == [True]
    urls = [
        source["url"]
        for path in provisioning.glob("datasources/*.y*ml")
        for source in yaml.load(path)["datasources"]
    ]
    (port,) = published(SERVICES["prometheus"])
    assert urls == [f"http://prometheus:{port}"]
