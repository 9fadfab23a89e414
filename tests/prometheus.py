"""Prometheus on the files that we ship, with all their durations made shorter by one factor."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
from ruamel.yaml import YAML

from tests.brokers import ROOT, free_port
from tests.processes import until

JSON = dict[str, Any]

SHIPPED: Final = ROOT / "deploy/prometheus"
DASHBOARD: Final = ROOT / "deploy/grafana/hookbus.json"
NEEDED: Final = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="needs prometheus and promtool (Debian: apt-get install prometheus)",
)

_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_DURATION: Final = re.compile(r"([0-9]+)(ms|s|m|h)")
_RANGE: Final = re.compile(r"\[([0-9]+(?:ms|s|m|h))\]")
_TIMED: Final = frozenset(
    (
        "for",
        "keep_firing_for",
        "interval",
        "scrape_interval",
        "scrape_timeout",
        "evaluation_interval",
    )
)
_yaml: Final = YAML(typ="safe", pure=True)


def load(name: str) -> JSON:
    """One of the shipped files."""
    tree: JSON = _yaml.load(SHIPPED / name)
    return tree


def alerts() -> dict[str, JSON]:
    """The shipped alerts by name."""
    return {
        rule["alert"]: rule
        for group in load("rules.yml")["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }


def expressions() -> list[str]:
    """Those of all shipped rules."""
    return [rule["expr"] for group in load("rules.yml")["groups"] for rule in group["rules"]]


def shorter(tree: Any, factor: int) -> Any:
    """The tree with every duration divided: intervals, `for`, and the ranges in expressions."""
    if isinstance(tree, list):
        return [shorter(each, factor) for each in tree]
    if not isinstance(tree, dict):
        return tree
    made = {}
    for key, value in tree.items():
        if key in _TIMED:
            made[key] = _shorter(value, factor)
        elif key == "expr":
            made[key] = _RANGE.sub(lambda found: f"[{_shorter(found[1], factor)}]", value)
        else:
            made[key] = shorter(value, factor)
    return made


def _shorter(duration: str, factor: int) -> str:
    number, unit = _DURATION.fullmatch(duration).groups()  # type: ignore[union-attr]
    return f"{int(number) * _MILLISECONDS[unit] // factor}ms"


class Prometheus:
    """A server that answers on a port of this machine."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/"

    def get(self, path: str, parameters: Mapping[str, str] = MappingProxyType({})) -> Any:
        """The data of an answer of its API."""

        def answered() -> list[Any]:
            data = self.ask(path, parameters)
            return [] if data is None else [data]

        (data,) = until(answered, f"an answer to {path} {parameters}")
        return data

    def ask(self, path: str, parameters: Mapping[str, str] = MappingProxyType({})) -> Any:
        """As `get`; None if it does not answer now."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self._url}{path}?{query}", timeout=10) as answer:  # noqa: S310 - ours
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 503:  # it starts
                    return None
                pytest.fail(f"{path} {parameters}: {error.read().decode()}")
        except OSError:
            return None

    def query(self, expression: str) -> list[tuple[JSON, float]]:
        """Labels and value of each series, now."""
        data = self.get("query", {"query": expression})
        return [(sample["metric"], float(sample["value"][1])) for sample in data["result"]]

    def series(self, selector: str) -> list[JSON]:
        """The series that a selector has selected at any time."""
        found: list[JSON] = self.get("series", {"match[]": selector})
        return found

    def values(self, label: str, selector: str) -> list[str]:
        """The values that a label has in these series."""
        found: list[str] = self.get(f"label/{label}/values", {"match[]": selector})
        return found

    def firing(self, alert: str) -> list[JSON]:
        """Each alert of this name that fires now."""
        return [
            one
            for one in self.get("alerts")["alerts"]
            if one["state"] == "firing" and one["labels"]["alertname"] == alert
        ]

    def rules(self) -> list[JSON]:
        """All rules, with what Prometheus thinks of them."""
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]


@contextlib.contextmanager
def prometheus(folder: Path, targets: list[str], factor: int) -> Iterator[Prometheus]:
    """A server on the shipped files that scrapes these targets; returns when it has."""
    config = shorter(load("prometheus.yml"), factor)
    # An answer takes as long as ever: nothing makes the machine faster.
    config["global"]["scrape_timeout"] = config["global"]["scrape_interval"]
    (job,) = config["scrape_configs"]
    del job["dns_sd_configs"]
    job["static_configs"] = [{"targets": targets}]
    _write(folder / "prometheus.yml", config)
    _write(folder / "rules.yml", shorter(load("rules.yml"), factor))
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--query.lookback-delta={_shorter('5m', factor)}",
        "--log.level=warn",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    server = Prometheus(port)
    try:
        until(
            lambda: _scrapes(server, len(targets)) or process.poll() is not None,
            lambda: (folder / "prometheus.log").read_text(),
        )
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        yield server
    finally:
        process.kill()
        process.wait()


def _scrapes(server: Prometheus, targets: int) -> bool:
    answers = server.ask("status/buildinfo") is not None
    return answers and [value for _, value in server.query("up")] == [1] * targets


def _write(path: Path, tree: Mapping[str, Any]) -> None:
    text = io.StringIO()
    _yaml.dump(dict(tree), text)
    path.write_text(text.getvalue())
