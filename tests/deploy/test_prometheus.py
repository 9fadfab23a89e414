"""The alerting rules: well-formed, tested one by one, and with no label that could be content."""

import re
import subprocess

import pytest

from tests.prometheus import NEEDED, SHIPPED, alerts, load, shorter

ALERTS = alerts()
LABELS = {"job", "instance", "loop", "sink", "route", "topic", "partition", "reason", "code"}
"""What an alert may show: the targets', and closed sets."""


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], cwd=SHIPPED, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@NEEDED
def test_promtool_accepts_the_configuration_and_the_rules():
    assert "SUCCESS" in promtool("check", "config", "prometheus.yml")
    assert "SUCCESS" in promtool("check", "rules", "--lint-fatal", "rules.yml")


@NEEDED
def test_every_alert_fires_when_it_should_and_not_before():
    promtool("test", "rules", "rules_test.yml")


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_is_tested_where_it_fires_and_where_it_does_not(alert):
    cases = [case for test in load("rules_test.yml")["tests"] for case in test["alert_rule_test"]]
    fires = {bool(case["exp_alerts"]) for case in cases if case["alertname"] == alert}
    assert fires == {True, False}


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_an_alert_says_how_urgent_it_is_what_it_is_and_where_to_read_on(alert):
    assert alert["for"]
    assert alert["labels"]["severity"] in ("critical", "warning")
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert alert["annotations"]["runbook_url"] == f"docs/runbooks.md#{alert['alert'].lower()}"


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS)
def test_an_alert_shows_no_label_but_those_of_closed_sets(alert):
    templates = " ".join(alert["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", templates)) <= LABELS
    assert set(re.findall(r"\$(?!labels\.)(\w+)", templates)) <= {"value"}


def test_durations_are_shortened_wherever_they_are():
    """Otherwise the end-to-end test would run other rules than those that are shipped."""
    rules = {
        "for": "5m",
        "interval": "15s",
        "expr": "rate(a_rate5m[15m]) > 5",
        "record": "x:rate5m",
    }
    assert shorter({"groups": [rules]}, 60) == {
        "groups": [
            {
                "for": "5000ms",
                "interval": "250ms",
                "expr": "rate(a_rate5m[15000ms]) > 5",
                "record": "x:rate5m",
            }
        ]
    }
    left = str([shorter(load(name), 60) for name in ("rules.yml", "prometheus.yml")])
    assert not re.search(r"\[[0-9]+[smhd]\]|offset [0-9]", left)
