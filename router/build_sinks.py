"""The sinks that a configuration names. Nothing is opened here."""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import cached_property

from hookbus.router import build_bus
from hookbus.router.configuration.config import (
    Config,
    HttpBackend,
    SinkConfig,
)
from hookbus.router.outages import Terms
from hookbus.router.sinks.contract import Sink
from hookbus.router.sinks.file import FileSink
from hookbus.router.sinks.http import HttpSink
from hookbus.router.sinks.stdout import StdoutSink
from hookbus.router.sinks.topic import TopicSink
from hookbus.router.types import Bus


def terms(config: Config, name: str) -> Terms:
    sink = config.sinks[name]
    return Terms(
        name=name,
        policy=sink.policy,
        timeout=sink.timeout,
        deadline=sink.deadline,
        first_delay=sink.retry.initial,
        longest_delay=sink.retry.maximum,
        forward=name not in build_bus.failures(config).journal_only,
    )


class Backends:
    """Makes the sinks of a process, whose topics are on `source`. Those that print are one, because
    they have one stream."""

    def __init__(self, source: Bus) -> None:
        self._source = source

    def sink(self, name: str, settings: SinkConfig) -> Sink:
        """The sink for the one backend that the settings name."""
        if settings.http is not None:
            if settings.http.bearer is not None:
                build_bus.read_secret(
                    settings.http.bearer, f"sinks.{name}.http.bearer"
                )  # or refuse to start
            return _http(name, settings.topics, settings.http)
        if settings.file is not None:
            file = settings.file
            return FileSink(file.path, rotate_bytes=file.rotate, rotate_keep=file.keep)
        if settings.topic is not None:
            return TopicSink(self._source, settings.topic)
        return self._stdout

    @cached_property
    def _stdout(self) -> StdoutSink:
        return StdoutSink(sys.stdout.buffer)


def _http(name: str, topics: Collection[str], http: HttpBackend) -> HttpSink:
    return HttpSink(
        name,
        http.url,
        topics=topics,
        bearer=http.bearer.read if http.bearer is not None else None,
        headers=http.headers,
        ca_file=http.ca_file,
        cert_file=http.cert_file,
        key_file=http.key_file,
        allow_private=http.allow_private,
        allow_plain_http=http.allow_plain_http,
    )
