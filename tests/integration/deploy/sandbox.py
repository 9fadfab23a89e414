"""Root file systems without a container engine: what an image has inside, run on this machine.

A root is an overlay over the machine's own file system, so that it has the machine's tools and
nothing that happens in it is left. Roots share one network, which reaches this machine's registries
while they are built and nothing but itself while they run. Linux, as root, with util-linux.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.processes import until

_TOOLS: Final = ("unshare", "nsenter", "setpriv", "mount", "chroot")
_LOOPBACK_UP: Final = """
import fcntl, socket, struct
with socket.socket() as any_socket:  # SIOCSIFFLAGS: up and running
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
"""


def unavailable() -> str | None:
    """Why there can be no sandbox here, if so."""
    if os.geteuid() != 0 or any(shutil.which(tool) is None for tool in _TOOLS):
        return "needs root on Linux, with util-linux"
    probe = (
        "mount -t tmpfs none /mnt && cd /mnt && mkdir written work seen && "
        "mount -t overlay none -o lowerdir=/,upperdir=written,workdir=work seen"
    )
    tried = subprocess.run(["unshare", "--mount", "sh", "-c", probe], capture_output=True)
    return None if tried.returncode == 0 else "the kernel gives no overlay over this file system"


class Sandbox:
    """A place for roots, gone at the end with all that was written there. In each, /opt/python is
    where `python` is installed, which may be in a home, and so closed to other users."""

    def __init__(self, folder: Path, python: Path) -> None:
        self._folder = folder
        self._python = python

    def __enter__(self) -> Sandbox:
        script = (
            f'mount -t tmpfs tmpfs "$0" && {sys.executable} -c "$1" && echo ready && exec cat >&2'
        )
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-c", script, str(self._folder), _LOOPBACK_UP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.communicate()  # its end of the file ends it, and so the mounts

    def enter(self, *namespaces: str) -> list[str]:
        """The beginning of a command that runs in the sandbox's mounts, and its network if asked
        for."""
        held = Path(f"/proc/{self._holder.pid}/ns")
        chosen = {"mount": "mnt", "net": "net"}
        return ["nsenter", *(f"--{name}={held / chosen[name]}" for name in namespaces)]

    def root(self, name: str, *below: Root) -> Root:
        """A fresh root over the machine's file system, and over other roots."""
        base = self._folder / name
        lower = ":".join([*(str(root.written) for root in below), "/"])
        script = (
            'mkdir -p "$0/written" "$0/work" "$0/seen" && '
            'mount -t overlay none -o "lowerdir=$1,upperdir=$0/written,workdir=$0/work" "$0/seen"'
            ' && mount --rbind /dev "$0/seen/dev" && mount -t proc proc "$0/seen/proc"'
            ' && mkdir -p "$0/seen/opt/python" && mount --bind "$2" "$0/seen/opt/python"'
            ' && mount -o remount,bind,ro "$0/seen/opt/python"'
        )
        self.script(script, str(base), lower, str(self._python))
        return Root(self, base)

    def script(self, script: str, *arguments: str) -> None:
        """Run a shell script in the sandbox's mounts, outside of any root."""
        run(["sh", "-ec", script, *arguments], self.enter("mount"))


class Root:
    """One root file system."""

    def __init__(self, sandbox: Sandbox, base: Path) -> None:
        self._sandbox = sandbox
        self.written = base / "written"
        self.seen = base / "seen"

    def path(self, inside: str) -> Path:
        """Where a path of the root is, for `Sandbox.script`."""
        return self.seen / inside.lstrip("/")

    def script(self, script: str, *arguments: str) -> None:
        """As `Sandbox.script`."""
        self._sandbox.script(script, *arguments)

    def copy(self, source: Path, target: str) -> None:
        """Copy a file, or what is in a folder, into a folder."""
        script = 'mkdir -p "$1"; if [ -d "$0" ]; then cp -a "$0/." "$1"; else cp -a "$0" "$1"; fi'
        self.script(script, str(source), str(self.path(target)))

    def build(self, command: Sequence[str], env: Mapping[str, str], cwd: str = "/") -> str:
        """Run a command as root with the machine's network, and expect it to succeed; returns what
        it says."""
        given = {**_registry_settings(), **env}
        inside = ["env", f"--chdir={cwd}", "--ignore-environment", *_assignments(given), *command]
        return run(inside, [*self._sandbox.enter("mount"), "chroot", str(self.seen)])

    @contextlib.contextmanager
    def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        user: str,
        cwd: str = "/",
        mounts: Mapping[str, Path],
        writable: Sequence[str] = (),
        tmpfs: Sequence[str] = ("/tmp",),  # noqa: S108 - inside
        stderr: Path,
    ) -> Iterator[Process]:
        """Run a command as a container engine would: first process of its own, without
        capabilities or new privileges, in a file system that is read-only but for `tmpfs` and the
        mounts that `writable` names. `mounts` are paths inside, and what is seen there."""
        script = 'R="$0"; mount --make-rprivate /\n'
        for inside, source in mounts.items():
            at = self.path(inside)
            made = f'mkdir -p "{at}"' if source.is_dir() else f'mkdir -p "{at.parent}"; : >"{at}"'
            script += f'{made}; mount --bind "{source}" "{at}"\n'
            if inside not in writable:
                script += f'mount -o remount,bind,ro "{at}"\n'
        for inside in tmpfs:
            script += f'mkdir -p "$R{inside}"; mount -t tmpfs tmpfs "$R{inside}"\n'
        script += (
            'mount -o remount,bind,ro "$R"; mount -t proc proc "$R/proc"\nexec chroot "$R" "$@"'
        )
        isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", script]
        with stderr.open("wb") as log:
            popen = subprocess.Popen(
                [*self._sandbox.enter("mount", "net"), *isolated, str(self.seen),
                 *_unprivileged(user), "env", f"--chdir={cwd}", "--ignore-environment",
                 *_assignments(env), *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        process = Process(popen, env, user, stderr)
        try:
            until(lambda: process.first is not None or not process.running, "a first process")
            yield process
        finally:
            process.kill()


class Process:
    """A running command of a root."""

    def __init__(
        self, popen: subprocess.Popen[bytes], env: Mapping[str, str], user: str, stderr: Path
    ) -> None:
        self._popen = popen
        self._env = env
        self._user = user
        self._stderr = stderr

    @property
    def stderr(self) -> str:
        return self._stderr.read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def execute(
        self, command: Sequence[str], stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run another command beside it, as its user, with what it sees."""
        entry = ["nsenter", f"--target={self.first}", "--mount", "--net", "--pid", "--root"]
        inside = [*_unprivileged(self._user), "env", "--ignore-environment"]
        return subprocess.run(
            [*entry, *inside, *_assignments(self._env), *command],
            input=stdin,
            capture_output=True,
            timeout=60,
        )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command itself."""
        assert self.first is not None, self.stderr
        os.kill(self.first, number)

    def healthy(self, check: Sequence[str]) -> Process:
        """Wait until a health check says yes."""
        self.until(lambda: self.execute(check).returncode == 0)
        return self

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that it does."""
        until(lambda: not self.running or condition(), lambda: self.stderr)
        assert self.running, self.stderr

    def wait(self, patience: float = 60.0) -> int:
        """Its exit code."""
        return self._popen.wait(patience)

    def stop(self, patience: float = 60.0) -> int:
        """Ask it to end, as engines do; returns its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(patience)

    def kill(self) -> None:
        if self.first is not None:
            self.signal(signal.SIGKILL)
        else:
            self._popen.kill()
        self._popen.wait()

    @property
    def first(self) -> int | None:
        """The number of the command on this machine."""
        thread = Path(f"/proc/{self._popen.pid}/task/{self._popen.pid}")
        children = (thread / "children").read_text() if thread.exists() else ""
        return int(children.split()[0]) if children else None


def run(command: Sequence[str], entry: Sequence[str] = ()) -> str:
    """Run a command to its end and expect it to succeed; returns what it says."""
    done = subprocess.run(
        [*entry, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-4000:]}"
    return done.stdout


def _registry_settings() -> dict[str, str]:
    """How this machine reaches its registries, which an engine would be told too."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_")) or name.lower().endswith("_proxy")
    }


def _unprivileged(user: str) -> list[str]:
    uid, _, gid = user.partition(":")
    return ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups",
            "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]  # fmt: skip


def _assignments(env: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in env.items()]
