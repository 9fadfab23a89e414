"""The wheel that a clean clone builds."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("router", "codecs", "policies", "schemas")


def tracked():
    """The files of the four folders that git tracks, as they are named in the wheel."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return {f"hookbus/{name}" for name in listed.stdout.splitlines()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built by way of the source distribution, from a clone of what is committed."""
    folder = tmp_path_factory.mktemp("packaging")
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True, capture_output=True)
    build = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", folder / "dist", clone],
        capture_output=True,
        text=True,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    assert build.returncode == 0, build.stderr[-2000:]
    (path,) = (folder / "dist").glob("*.whl")
    return path


def test_the_wheel_holds_every_module_and_schema_of_the_folders(wheel):
    """Nothing that is tracked is missing, and nothing else is in it."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("hookbus/")}
    assert packed == tracked()


def test_an_installed_wheel_works_without_the_checkout(wheel, tmp_path):
    """The command runs from site-packages alone, and finds its schemas there."""
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site, wheel],
        check=True,
        capture_output=True,
    )
    ran = subprocess.run(
        [sys.executable, "-m", "hookbus.router", "check"],
        cwd=tmp_path,
        input=b'{"harness": {}}\n',
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert ran.returncode == 1, ran.stderr
    assert b'"code":"unsupported_type"' in ran.stdout or b'"code":"schema"' in ran.stdout
