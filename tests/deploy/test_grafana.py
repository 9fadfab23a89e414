"""The dashboard as a document: what Grafana would not complain about, and people would."""

import json
from itertools import combinations

import pytest
from ruamel.yaml import YAML

from tests.brokers import ROOT
from tests.prometheus import DASHBOARD

BOARD = json.loads(DASHBOARD.read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def provisioned(kind):
    path = ROOT / "deploy/grafana/provisioning" / kind / "hookbus.yml"
    return YAML(typ="safe", pure=True).load(path)


def area(panel):
    at = panel["gridPos"]
    return range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])


def test_panel_ids_are_unique():
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_panels_stay_on_the_grid_and_overlap_nowhere():
    for panel in BOARD["panels"]:
        columns, _ = area(panel)
        assert 0 <= columns.start < columns.stop <= 24, panel["title"]
    for one, other in combinations(BOARD["panels"], 2):
        shared = [
            set(mine).intersection(theirs)
            for mine, theirs in zip(area(one), area(other), strict=True)
        ]
        assert not all(shared), (one["title"], other["title"])


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows_in_which_unit_and_names_its_series(panel):
    assert panel["description"].endswith(".")
    assert panel["type"] == "table" or panel["fieldConfig"]["defaults"]["unit"]
    assert panel["type"] == "stat" or all(target["legendFormat"] for target in panel["targets"])


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_asks_the_chosen_prometheus_for_the_chosen_job(panel):
    assert panel["datasource"] == SOURCE
    for target in panel["targets"]:
        assert target["datasource"] == SOURCE
        assert "$job" in target["expr"]


def test_the_provisioned_prometheus_is_the_one_that_is_chosen_by_default():
    (source,) = provisioned("datasources")["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    (chosen,) = [v for v in BOARD["templating"]["list"] if v["type"] == "datasource"]
    assert (chosen["name"], chosen["current"]["value"]) == ("datasource", "default")


def test_the_dashboard_is_provisioned_from_a_folder():
    (provider,) = provisioned("dashboards")["providers"]
    assert provider["type"] == "file"
    assert provider["options"]["path"] == "/etc/grafana/dashboards"
