"""What one process runs of a configuration."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from hookbus.router.configuration.config import Config
from hookbus.router.errors import ConfigError
from hookbus.router.router_loop import NAME as ROUTER

__all__ = ("ROUTER", "Part", "choose", "loop_of")


class Part(Struct, frozen=True):
    """The loops of a process."""

    router: bool
    sinks: tuple[str, ...]

    @property
    def loops(self) -> list[str]:
        """Their names: `router`, `sink:NAME`."""
        return [ROUTER] * self.router + [loop_of(sink) for sink in self.sinks]

    def view(self, config: Config) -> Config:
        """The configuration with the routes and sinks of this part alone: what a process shows
        series of, so that none is shown by a process that doesn't run it."""
        return replace(
            config,
            ingress=config.ingress if self.router else {},
            routes=config.routes if self.router else {},
            sinks={name: config.sinks[name] for name in self.sinks},
        )


def loop_of(sink: str) -> str:
    """The name of a sink's loop."""
    return f"sink:{sink}"


def choose(config: Config, only: Sequence[str]) -> Part:
    """All parts, or those that `--only` names. Raises ConfigError with the unknown ones."""
    unknown = [f"--only {name}: there is no such part" for name in only if not _is(config, name)]
    if unknown:
        raise ConfigError(unknown)
    if only:
        sinks = [name.removeprefix("sink:") for name in only if name != ROUTER]
        return Part(router=ROUTER in only, sinks=tuple(dict.fromkeys(sinks)))
    if not config.routes and not config.sinks:
        raise ConfigError(["routes, sinks: there is nothing to run"])
    return Part(router=bool(config.routes), sinks=tuple(config.sinks))


def _is(config: Config, name: str) -> bool:
    if name == ROUTER:
        return bool(config.routes)
    kind, _, sink = name.partition(":")
    return kind == "sink" and sink in config.sinks
