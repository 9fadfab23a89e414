"""Where the operator server listens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv6Address
from typing import Final, NamedTuple

from hookbus.router.configuration.config import Config

_WRITTEN: Final = re.compile(
    r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*))"
    r":(?P<port>[0-9]{1,5})"
)
_EXPECTED: Final = (
    "expected host:port or [IPv6 address]:port, such as 127.0.0.1:9464, with a port up to 65535"
)


class Listen(NamedTuple):
    """A host and a port of this machine; port 0 is any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Listen:
        """Raises ValueError that says what is expected. There has to be a host: without one all
        addresses of the machine would be meant."""
        found = _WRITTEN.fullmatch(text)
        if found is None or int(found["port"]) > 65535:
            raise ValueError(_EXPECTED)
        if found["v6"] is not None:
            try:
                IPv6Address(found["v6"])
            except ValueError:
                raise ValueError(_EXPECTED) from None
        return cls(found["v6"] or found["host"], int(found["port"]))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def listen_problems(config: Config) -> Iterator[str]:
    if config.metrics is None:
        return
    try:
        Listen.parse(config.metrics.listen)
    except ValueError as error:
        yield f"metrics.listen: {error}"
