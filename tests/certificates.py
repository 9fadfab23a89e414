"""Certificates for TLS with real peers, made by the openssl command."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


class Authority:
    """The certificate authority in a folder, made if there is none; `file` is its certificate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "ca.pem").exists():
            self._make("ca", "-addext", "keyUsage=keyCertSign")
        self.file = str(folder / "ca.pem")

    def _make(self, name: str, *options: str) -> str:
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
        command += ["ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}"]
        command += ["-keyout", f"{name}.key", "-out", f"{name}.pem", *options]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        return str(self.folder / f"{name}.pem")

    def issue(self, name: str, *options: str, of: str | None = None) -> tuple[str, str]:
        """A certificate and its key, for a host of this name or for `of` (`IP:127.0.0.1`)."""
        alternative = f"subjectAltName={of or f'DNS:{name}'}"
        signed = ["-addext", alternative, "-CA", "ca.pem", "-CAkey", "ca.key"]
        return self._make(name, *signed, *options), str(self.folder / f"{name}.key")

    def server(
        self, name: str, *options: str, of: str | None = None, clients: bool = False
    ) -> ssl.SSLContext:
        """The TLS side of a server, with a certificate that `issue` makes; with `clients` it asks
        for one of this authority."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.file)
        context.load_cert_chain(*self.issue(name, *options, of=of))
        context.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
        return context
