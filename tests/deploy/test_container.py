"""What the container file and its locks promise without being built."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tests.deploy.containerfile import FILE, ROOT, context, pairs, stages
from tests.deploy.locks import pins, pyproject, unsatisfied, version

STAGES = stages()
FINAL = STAGES[-1]


def test_the_linter_has_nothing_to_say_of_the_container_file():
    """Not even a remark."""
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, "--no-color", FILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_all_stages_start_from_one_base_with_a_full_version_that_hookbus_supports():
    """It can be overridden, by one with a digest, in one place."""
    (base,) = {stage.base for stage in STAGES}
    found = re.fullmatch(r"python:(\d+\.\d+\.\d+)-slim-[a-z]+", base)
    assert found is not None
    assert SpecifierSet(pyproject()["project"]["requires-python"]).contains(found[1])


def test_the_image_runs_as_a_fixed_number_that_is_not_root():
    """Kubernetes' runAsNonRoot can tell it only from a number."""
    assert re.fullmatch(r"[1-9]\d{4}:[1-9]\d{4}", FINAL.last("USER").words[0])


def test_the_image_starts_and_is_asked_for_its_health_without_a_shell():
    """A shell would keep SIGTERM to itself."""
    assert all(FINAL.last(name).exec for name in ("ENTRYPOINT", "CMD", "HEALTHCHECK"))
    assert FINAL.last("STOPSIGNAL").words == ("SIGTERM",)


def test_nothing_is_installed_in_the_last_stage_and_nothing_is_fetched_by_address():
    """What it has comes from the stage before."""
    commands = [word for step in FINAL.steps if step.name == "RUN" for word in step.words]
    assert not any(re.search(r"\b(apt|apt-get|install -r|pip install)\b", c) for c in commands)
    assert not any(step.name == "ADD" for stage in STAGES for step in stage.steps)


def test_every_installation_is_locked_with_hashes_or_offline():
    """And takes wheels only, so that no compiler is needed."""
    commands = [
        command
        for stage in STAGES
        for step in stage.steps
        if step.name == "RUN"
        for command in step.words[0].split("&&")
        if "pip" in command and " install " in command
    ]
    assert len(commands) == 3
    for command in commands:
        assert "--no-index" in command or "--only-binary :all: --require-hashes" in command


def test_the_locks_satisfy_what_the_project_asks_for():
    """`make lock` has been run since the last change of a range."""
    project = pyproject()
    wanted = project["project"]["dependencies"]
    traces = project["project"]["optional-dependencies"]["traces"]
    assert unsatisfied([*wanted, *traces], pins("requirements.lock")) == []
    assert unsatisfied(project["build-system"]["requires"], pins("build.lock")) == []


@pytest.mark.parametrize("wanted", ["jiter>=999", "no-such-thing>=1"])
def test_a_lock_that_does_not_satisfy_a_requirement_is_noticed(wanted):
    """A range that was raised, and a dependency that was added."""
    assert unsatisfied([wanted], pins("requirements.lock")) == [wanted]


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_every_pin_has_an_exact_version_and_a_hash(name):
    """Nothing else can be installed."""
    text = (ROOT / "deploy/container" / name).read_text()
    entries = re.findall(
        r"^\S+==\S+(?: ;[^\\]*)? \\\n(?:    --hash=sha256:[0-9a-f]{64} ?\\?\n)+", text, re.MULTILINE
    )
    assert len(entries) == len(pins(name)) > 0
    assert all(version(pin) for pin in pins(name))


def test_the_labels_name_this_version_and_its_license():
    """As pyproject.toml does."""
    labels = pairs(FINAL.last("LABEL").words)
    project = pyproject()["project"]
    assert labels["org.opencontainers.image.version"] == project["version"]
    assert labels["org.opencontainers.image.licenses"] == project["license"]
    assert labels["org.opencontainers.image.description"] == project["description"]


def test_a_build_sees_the_packages_and_the_locks_and_nothing_else():
    """No history, tests, environments or secrets get into a layer."""
    folders = set(pyproject()["tool"]["setuptools"]["package-dir"].values())
    seen = {str(path) for path in context(ROOT)}
    assert {path.partition("/")[0] for path in seen if "/" in path} == folders | {"deploy"}
    assert {path for path in seen if path.startswith("deploy/")} == {
        "deploy/container/build.lock",
        "deploy/container/requirements.lock",
    }
    assert {path for path in seen if "/" not in path} == {"LICENSE", "README.md", "pyproject.toml"}
    assert not any("__pycache__" in path for path in seen)
