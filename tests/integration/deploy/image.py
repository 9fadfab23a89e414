"""The container image, built without a container engine: each step of the container file is carried
out in a root of its stage, in order, from a clean clone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Final

from tests.deploy.containerfile import Stage, Step, context, pairs, stages
from tests.integration.deploy.sandbox import Process, Root, Sandbox

_ROOT: Final = Path(__file__).parents[3]
_BASE: Final = "/usr/local/base/bin"
_SYSTEM: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Image:
    """A built stage: its root, and what its instructions say of the processes in it."""

    root: Root
    env: dict[str, str]
    workdir: str = "/"
    user: str = "0:0"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    volumes: tuple[str, ...] = field(default=())

    def volume(self, inside: str, folder: Path) -> Path:
        """A new volume: as in an engine, with the owner of the folder that it is mounted on."""
        script = 'mkdir "$1" && chown --reference="$0" "$1"'
        self.root.script(script, str(self.root.path(inside)), str(folder))
        return folder

    def run(
        self,
        stderr: Path,
        *arguments: str,
        mounts: Mapping[str, Path],
        env: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[Process]:
        """A container: the entry point with the arguments, or with those of the image. Of `mounts`
        only the image's volumes are writable."""
        return self.root.start(
            [*self.entrypoint, *(arguments or self.command)],
            {**self.env, **(env or {})},
            user=self.user,
            cwd=self.workdir,
            mounts=mounts,
            writable=self.volumes,
            stderr=stderr,
        )


def python() -> Path:
    """Where the interpreter is installed that stands in for that of the base image: one of the same
    version, if there is one."""
    version = stages()[0].base.partition(":")[2]
    name = "python" + ".".join(version.split(".")[:2])
    for found in filter(None, (shutil.which(name), sys.executable)):
        # A shim of a version manager is found even where it has nothing behind it.
        ask = [found, "-c", "import sys; print(sys.base_prefix)"]
        done = subprocess.run(ask, capture_output=True, text=True)
        if done.returncode == 0:
            return Path(done.stdout.strip())
    raise RuntimeError("there is no Python")


def clone(folder: Path) -> Path:
    """What is committed, and nothing else."""
    subprocess.run(["git", "clone", "-q", _ROOT, folder], check=True, capture_output=True)
    return folder


def build(sandbox: Sandbox, base: Root, checkout: Path) -> Image:
    """Carry out the container file of a checkout, on something in place of its base."""
    seen = checkout.with_name("context")
    for path in context(checkout):
        (seen / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(checkout / path, seen / path)
    done: dict[str, Image] = {}
    for stage in stages(checkout / "deploy/container/Dockerfile"):
        done[stage.name] = _stage(sandbox, stage, base, seen, done)
    return done[stage.name]


def base(sandbox: Sandbox) -> Root:
    """In place of the base image: this machine, with a Python that has nothing but pip."""
    root = sandbox.root("base")
    interpreter = "/opt/python/bin/python3"
    library = "echo /opt/python/lib >/etc/ld.so.conf.d/python.conf && ldconfig"
    root.build(["sh", "-c", library], {"PATH": _SYSTEM})
    root.build([interpreter, "-m", "venv", str(Path(_BASE).parent)], {"PATH": _SYSTEM})
    return root


def _stage(
    sandbox: Sandbox, stage: Stage, base: Root, seen: Path, done: Mapping[str, Image]
) -> Image:
    image = Image(sandbox.root(stage.name, base), {"PATH": f"{_BASE}:{_SYSTEM}"})
    for step in stage.steps:
        _carry_out(step, image, seen, done)
    return image


def _carry_out(step: Step, image: Image, seen: Path, done: Mapping[str, Image]) -> None:
    match step.name:
        case "RUN":
            image.root.build(["/bin/sh", "-c", *step.words], image.env, image.workdir)
        case "COPY":
            _copy(step, image, seen, done)
        case "ENV":
            given = pairs(step.words).items()
            image.env |= {name: Template(value).substitute(image.env) for name, value in given}
        case "WORKDIR":
            image.workdir = step.words[0]
            image.root.build(["mkdir", "-p", image.workdir], image.env)
        case "USER":
            image.user = step.words[0]
        case "VOLUME":
            image.volumes = step.words
        case "ENTRYPOINT":
            image.entrypoint = step.words
        case "CMD":
            image.command = step.words
        case "HEALTHCHECK":
            image.health = step.words[1:]
        case "LABEL" | "EXPOSE" | "STOPSIGNAL":
            pass
        case _:
            raise NotImplementedError(step.name)


def _copy(step: Step, image: Image, seen: Path, done: Mapping[str, Image]) -> None:
    *sources, target = step.words
    into = Path(image.workdir, target)
    origin = seen
    for flag in step.flags:
        origin = done[flag.removeprefix("--from=")].root.seen
    for source in sources:
        image.root.copy(origin / source.lstrip("/"), str(into))
