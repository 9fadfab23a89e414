"""What an AHP registration document comes to: routes and sinks, merged into a configuration.

Each HTTP backend with observe subscriptions becomes a sink of its own name; each of these
subscriptions becomes a route to a topic that this sink alone reads. Stdio backends, intercept
subscriptions and backends that name no subscriptions are for harnesses: they are skipped, and a
note says so, because one document may serve both. A document that leaves nothing is refused.

A document grants nothing: the capture ceiling of its routes is the operator's to set, its backends
may not be private addresses, and what it asks for that the router can't do is a problem.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from hookbus.codecs.registration import (
    EVERYTHING,
    Backend,
    Bearer,
    Finding,
    HeaderSource,
    Http,
    Reading,
    Registrations,
    Stdio,
    Subscription,
)
from hookbus.policies.levels import Level
from hookbus.router.configuration.config import Config, HttpBackend, Route, SinkConfig
from hookbus.router.configuration.units import Secret
from hookbus.router.sinks.addresses import url_problem
from hookbus.router.sinks.requests import authorization, header_problems

POLICY: Final[Literal["fail-open"]] = "fail-open"
"""AHP gives observe subscriptions no failure policy, and calls observations best effort."""

TOPICS: Final = "hookbus.hooks."
_LONGEST_TOPIC: Final = 249
_LONGEST_NUMBER: Final = 8
_KEPT: Final = 160

Variables = Mapping[str, str] | None
Environment = Callable[[str], Variables]
"""The environment variables that hold the credentials of a backend; None if this process is not the
one that needs them: then they are not looked up, and a note tells where they are needed."""


class Note(Struct, frozen=True):
    """What an operator should know of a document: `path` is a JSON Pointer into the file
    `registration`."""

    registration: str
    path: str
    note: str


class Registered(Struct, frozen=True):
    """What one document comes to. `problems` are lines `FILE#POINTER: text`; with any, the routes
    and sinks are not to be used."""

    file: str
    routes: Mapping[str, Route]
    sinks: Mapping[str, SinkConfig]
    problems: tuple[str, ...]
    notes: tuple[Note, ...]
    places: Mapping[str, str]
    """Name of a route or sink -> JSON Pointer of what it was made of."""


def register(file: str, raw: bytes, capture: Level, environment: Environment) -> Registered:
    """What the document `raw` from `file` comes to, all its problems at once. `capture` is the
    ceiling of its routes."""
    return _Registrar(file, Registrations().read(raw), capture, environment).registered()


def merge(config: Config, documents: Sequence[Registered]) -> tuple[Config, list[str]]:
    """The configuration with the routes and sinks of faultless documents, and the names that are
    taken already, as problems."""
    routes, sinks = dict(config.routes), dict(config.sinks)
    written = {route.topic for route in routes.values()}
    written |= {sink.topic for sink in sinks.values() if sink.topic is not None}
    problems: list[str] = []
    for document in documents:
        for name, route in document.routes.items():
            at = f"{document.file}#{document.places[name]}"
            if name in routes:
                problems.append(f"{at}: there is a route {name} already")
            if route.topic in written:
                problems.append(f"{at}: {route.topic} is written already, so more than it selects")
            routes[name] = route
        for name, sink in document.sinks.items():
            if name in sinks:
                at = f"{document.file}#{document.places[name]}/id"
                problems.append(f"{at}: there is a sink {name} already")
            sinks[name] = sink
    return replace(config, routes=routes, sinks=sinks), problems


def topic_of(backend: str, number: int) -> str:
    """The topic of a backend's subscription: legal in Kafka, and the same at every start."""
    if len(TOPICS) + len(backend) + 1 + _LONGEST_NUMBER > _LONGEST_TOPIC:
        digest = hashlib.sha256(backend.encode()).hexdigest()[:16]
        backend = f"{backend[:_KEPT]}-{digest}"
    return f"{TOPICS}{backend}.{number}"


class _Registrar:
    def __init__(
        self, file: str, reading: Reading, capture: Level, environment: Environment
    ) -> None:
        self._file = file
        self._reading = reading
        self._capture = capture
        self._environment = environment
        self._problems = [*reading.problems]
        self._notes = [*reading.unknown]
        self._routes: dict[str, Route] = {}
        self._sinks: dict[str, SinkConfig] = {}
        self._places: dict[str, str] = {}

    def registered(self) -> Registered:
        for backend in self._reading.backends:
            if isinstance(backend.transport, Http):
                self._judge_url(backend.transport.url, f"{backend.path}/transport/url")
            observed = dict(self._observed(backend))
            if observed:
                self._add(backend, observed)
        if not self._sinks and not self._problems:
            self._problem("", "leaves nothing to deliver: no HTTP backend observes anything")
        return Registered(
            self._file,
            self._routes,
            self._sinks,
            tuple(f"{self._file}#{found.path}: {found.text}" for found in self._problems),
            tuple(Note(self._file, found.path, found.text) for found in self._notes),
            self._places,
        )

    def _observed(self, backend: Backend) -> Iterator[tuple[int, Subscription]]:
        """The subscriptions that the router can serve, after notes on the others."""
        if isinstance(backend.transport, Stdio):
            self._note(backend.path, "skipped: a stdio backend is run by its harness")
            return
        if backend.subscriptions is None:
            self._note(backend.path, "skipped: it names no subscriptions, and none are discovered")
            return
        for number, subscription in backend.subscriptions.items():
            at = f"{backend.path}/subscriptions/{number}"
            if subscription.mode == "intercept":
                self._note(at, "skipped: the router observes, it can't intercept")
                continue
            if subscription.scope == "project":
                self._problem(f"{at}/scope", "can't be enforced: the router knows no projects")
            if subscription.filters:
                self._note(f"{at}/filters", "not applied: AHP means them as hints")
            if subscription.upload is not None:
                self._note(f"{at}/upload", "not applied: references pass as they are")
            yield number, subscription

    def _add(self, backend: Backend, observed: Mapping[int, Subscription]) -> None:
        variables = self._environment(backend.id or "")
        bearer = self._bearer(backend, variables)
        http = backend.transport
        if not isinstance(http, Http) or backend.id is None:
            return  # which is a problem already
        headers = dict(self._headers(http, f"{backend.path}/transport/headers", variables))
        if bearer is not None and any(name.lower() == "authorization" for name in headers):
            self._note(f"{backend.path}/authentication", "the configured header Authorization wins")
            bearer = None
        for number, subscription in observed.items():
            name = f"{backend.id}.{number}"
            self._routes[name] = self._route(topic_of(backend.id, number), subscription)
            self._places[name] = f"{backend.path}/subscriptions/{number}"
        self._places[backend.id] = backend.path
        self._note(backend.path, "observe subscriptions have no failure policy; it is fail-open")
        self._sinks[backend.id] = SinkConfig(
            topics=[topic_of(backend.id, number) for number in observed],
            policy=POLICY,
            http=HttpBackend(url=http.url, bearer=bearer, headers=headers),
        )

    def _route(self, topic: str, subscription: Subscription) -> Route:
        everything = EVERYTHING in subscription.events
        return Route(
            topic=topic,
            match={} if everything else {"type": subscription.events},
            capture=self._capture,
            content=subscription.content,
            include_native=subscription.include_native,
            format="ahp",  # the ingress may bring AEP events too, and `tool.*` matches some
        )

    def _judge_url(self, url: str, at: str) -> None:
        problem = url_problem(url, allow_plain_http=False, allow_private=False)
        if problem is not None:  # what follows the semicolon is advice for sinks
            self._problem(at, problem.partition(";")[0])

    def _bearer(self, backend: Backend, variables: Variables) -> Secret | None:
        """The reference that the sink reads its token by; an unusable one is a problem."""
        at = f"{backend.path}/authentication"
        given = backend.authentication
        if given is None:
            return None
        if not isinstance(given, Bearer):
            self._problem(f"{at}/type", "is not supported; use bearer with tokenEnv")
            return None
        if given.token_env is None:
            self._problem(f"{at}/tokenRef", "is not supported; use tokenEnv")
            return None
        token = self._looked_up(given.token_env, f"{at}/tokenEnv", variables)
        if token and authorization(token) is None:
            self._problem(f"{at}/tokenEnv", "the variable holds what no header may have")
        return Secret(env=given.token_env)

    def _headers(self, http: Http, at: str, variables: Variables) -> Iterator[tuple[str, str]]:
        """The headers with their values; of those that differ by case alone the last."""
        last = {name.lower(): name for name in http.headers}
        for name in last.values():
            there = f"{at}/{name}"
            value = self._header_value(http.headers[name], there, variables)
            for problem in header_problems({name: value}, bearer=False):
                self._problem(there, problem.partition(": ")[2])
            yield name, value

    def _header_value(self, given: str | HeaderSource, at: str, variables: Variables) -> str:
        if isinstance(given, str):
            return given
        if given.value_env is None:
            self._problem(f"{at}/valueRef", "is not supported; use valueEnv")
            return ""
        return self._looked_up(given.value_env, f"{at}/valueEnv", variables) or ""

    def _looked_up(self, variable: str, at: str, variables: Variables) -> str | None:
        """The value of an environment variable, if it can be known. Its name isn't told: somebody
        may have written the secret itself."""
        if variables is None:
            self._note(at, "the variable is needed where the service runs")
            return None
        value = variables.get(variable)
        if not value:
            self._problem(at, "there is no such environment variable, or it is empty")
        return value

    def _problem(self, at: str, text: str) -> None:
        self._problems.append(Finding(at, text))

    def _note(self, at: str, text: str) -> None:
        self._notes.append(Finding(at, text))
