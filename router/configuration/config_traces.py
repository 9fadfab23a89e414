"""The section `traces` of the configuration."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from hookbus.router.configuration.config_types import Name, default
from hookbus.router.configuration.units import Duration, Secret

Share = Annotated[float, Meta(ge=0, le=1)]


class Traces(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Spans of the router and the sinks, for events that come with a sampled trace context."""

    otlp: Otlp
    """Where they go; needs the extra `hookbus[traces]`."""


class Otlp(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A collector that takes OTLP over HTTP."""

    endpoint: Name
    """Its base URL, such as http://localhost:4318; `/v1/traces` is added. https, or http to this
    machine."""
    headers: dict[Name, Secret] = field(default_factory=dict)
    """Sent with each request; read each time, so that a rotated one is taken up."""
    sample: Share = 1.0
    """How many of the traces that agents sampled are kept, by the trace's id: whole traces."""
    timeout: Duration = default(Duration(5))
    """How long one batch of spans is tried."""
    ca_file: Name | None = None
    """The authorities that its certificate is checked against, instead of the known public
    ones."""
    allow_plain_http: bool = False
    """Whether http may be spoken to another machine."""
