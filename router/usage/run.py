"""The usage of `hookbus run`."""

from __future__ import annotations

import argparse
import signal

from hookbus.router.usage.contract import CONFIGURED, Example, Usage, exits
from hookbus.router.usage.names import completing, parts
from hookbus.router.usage.options import CONFIG_FILE, SECRETS, add_config, add_registration

_LOG_LEVELS = ("debug", "info", "warning", "error")


def arguments(command: argparse.ArgumentParser) -> None:
    add_config(command)
    add_registration(command)
    only = command.add_argument(
        "--only", action="append", default=[], metavar="PART",
        help="run just this part, `router` or `sink:NAME`; may be given several times (default: "
        "everything that the configuration names)",
    )  # fmt: skip
    completing(only, parts)
    command.add_argument(
        "--listen", metavar="HOST:PORT",
        help="where /metrics, /healthz and /readyz are served; port 0 takes a free one (default: "
        "the configuration's metrics.listen, and without it none)",
    )  # fmt: skip
    command.add_argument(
        "--log-level", choices=_LOG_LEVELS, default="info", metavar="LEVEL",
        help=f"the least that is logged: {', '.join(_LOG_LEVELS)} (default: info)",
    )  # fmt: skip


RUN = Usage(
    "run",
    "hookbus.router.commands.run",
    "Run the service until a signal.",
    "Reads the ingress topics, writes each route's copies, and delivers to the sinks. With "
    "`workers: N` in the configuration the router runs in N processes and the sinks in one more. "
    "Processes with the same configuration, here or elsewhere, share the partitions.\n"
    "SIGTERM and SIGINT stop it in order: what is in hand is settled within `shutdown_grace`; a "
    "second signal stops it at once. SIGHUP has it read its configuration again: it goes over to "
    "the routes and sinks that the files have now, or logs why it doesn't. SIGTERM and SIGHUP wait "
    "for it while it starts.\n"
    "Logs are JSON on standard error, one object a line, and never hold content.",
    arguments,
    exits(*CONFIGURED[1:-1], _0="A signal stopped it, and what was in hand is settled."),
    (
        Example("hookbus run -c hookbus.yaml", "Everything in one process"),
        Example(
            "hookbus run -c hookbus.yaml --only router --listen 127.0.0.1:9465",
            "The router alone; the sinks run elsewhere",
        ),
        Example(
            "hookbus run -c hookbus.yaml --only sink:local.archive --log-level warning",
            "One sink alone",
        ),
    ),
    files={
        **CONFIG_FILE,
        "failures.journal": "The journal of failed deliveries, a SQLite file of this machine.",
    },
    environment={
        **SECRETS,
        "OTEL_*": "With `traces`, OpenTelemetry's own variables apply where the configuration says "
        "nothing, such as OTEL_RESOURCE_ATTRIBUTES.",
    },
    obeys=frozenset({signal.SIGTERM, signal.SIGHUP}),
)
