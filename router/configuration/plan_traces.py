"""What a configuration comes to in traces: pure and offline."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any, Final

from hookbus.router.configuration.config import Config
from hookbus.router.sinks.addresses import url_problem
from hookbus.router.sinks.requests import header_problems

MISSING: Final = "traces.otlp: needs OpenTelemetry, which is not installed; install hookbus[traces]"
_MODULES: Final = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


def trace_problems(config: Config) -> Iterator[str]:
    """What is wrong with the section `traces`, as far as it shows offline."""
    if config.traces is None:
        return
    otlp = config.traces.otlp
    problem = url_problem(otlp.endpoint, allow_plain_http=otlp.allow_plain_http)
    if problem:
        yield f"traces.otlp.endpoint: {problem}"
    names = dict.fromkeys(otlp.headers, "")
    yield from (f"traces.otlp.{problem}" for problem in header_problems(names, bearer=False))
    if not all(map(_installed, _MODULES)):
        yield MISSING


def describe_traces(config: Config) -> Iterator[dict[str, Any]]:
    """What `hookbus plan` says of it."""
    if config.traces is not None:
        yield {"traces": config.traces.otlp.endpoint, "sample": config.traces.otlp.sample}


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
