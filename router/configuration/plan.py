"""What a configuration comes to: every problem in it, and what it will do (`hookbus plan`).

Pure and offline: nothing is opened or resolved here.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from hookbus.policies.failures import Domains
from hookbus.policies.match import InvalidFilter, compile_filter
from hookbus.policies.selection import problems as selection_problems
from hookbus.router.configuration.config import Config, HttpBackend, SinkConfig
from hookbus.router.configuration.listen import listen_problems
from hookbus.router.configuration.plan_bus import ALL_CODECS, bus_problems, certificate_problems
from hookbus.router.configuration.plan_formats import format_problems
from hookbus.router.configuration.plan_traces import describe_traces, trace_problems
from hookbus.router.replays.attempts import replay_topic
from hookbus.router.sinks.addresses import url_problem
from hookbus.router.sinks.requests import header_problems

_AEP_CATEGORIES: Final = frozenset(
    ("session", "run", "progress", "tool", "delegation", "attention", "agent", "error", "state",
     "resource", "assessment", "control", "message", "x")
)  # fmt: skip


def problems(
    config: Config, event_types: Collection[str], codecs: Collection[str] = ALL_CODECS
) -> list[str]:
    """Everything that is wrong with a well-formed configuration, each with its path. `codecs` are
    the compressions that can be done here."""
    return [
        *bus_problems(config.bus, codecs),
        *_flow_problems(config),
        *_route_problems(config, event_types),
        *format_problems(config, event_types),
        *_sink_problems(config),
        *_audit_problems(config),
        *trace_problems(config),
        *listen_problems(config),
    ]


def domains(config: Config) -> Domains:
    """Which sinks fail together; a sink that names no domain is its own."""
    return Domains({name: sink.failure_domain or name for name, sink in config.sinks.items()})


def audit_sinks(config: Config) -> tuple[str, ...]:
    """The sinks that subscribe to the failures topic."""
    if config.failures is None:
        return ()
    return tuple(n for n, sink in config.sinks.items() if config.failures.topic in sink.topics)


def describe(config: Config) -> Iterator[dict[str, Any]]:
    """One object a route, then one a sink, then one for traces."""
    for name, route in config.routes.items():
        line: dict[str, Any] = {"route": name, "capture": route.capture, "topic": route.topic}
        if route.capture == "redacted":
            line["full_becomes"] = "redacted" if route.redact else "metadata"
        if route.content is not None:
            line["content"] = route.content
        if not route.include_native:
            line["native"] = False
        if route.format is not None:
            line["format"] = route.format
        yield line
    for name, sink in config.sinks.items():
        yield {
            "sink": name,
            "backend": _backends(sink)[0],
            "topics": sink.topics,
            "replay": replay_topic(config.bus.group, name),
            "policy": sink.policy,
            "failures": _recorded_at(config, name),
        }
    yield from describe_traces(config)


def _recorded_at(config: Config, sink: str) -> dict[str, Any]:
    failures = config.failures
    if failures is None:
        return {}
    if sink in failures.journal_only:
        return {"journal": failures.journal, "journal_only": True}
    return {
        "journal": failures.journal,
        "topic": failures.topic,
        "audit_sinks": list(domains(config).witnesses(sink, audit_sinks(config))),
    }


def _flow_problems(config: Config) -> Iterator[str]:
    """Topics that would feed back into the router, or belong to hookbus itself."""
    own: dict[str, str] = {}
    if config.failures is not None:
        own[config.failures.topic] = "failures.topic"
    if config.dead_letters is not None:
        if config.dead_letters.topic in own:
            yield "dead_letters.topic: is the failures topic"
        own[config.dead_letters.topic] = "dead_letters.topic"
    for name in config.sinks:
        own[replay_topic(config.bus.group, name)] = f"where replays for sink {name} go"
    ingress: dict[str, str] = {}
    for name, source in config.ingress.items():
        for topic in source.topics:
            if topic in ingress:
                yield f"ingress.{name}.topics: {topic} is a topic of ingress {ingress[topic]} too"
            if topic in own:
                yield f"ingress.{name}.topics: {topic} is {own[topic]}, which hookbus writes"
            ingress[topic] = name
    written = [(f"routes.{name}.topic", route.topic) for name, route in config.routes.items()]
    written += [
        (f"sinks.{name}.topic", sink.topic) for name, sink in config.sinks.items() if sink.topic
    ]
    for at, topic in written:
        if topic in ingress:
            yield f"{at}: {topic} belongs to ingress {ingress[topic]}; events would go in circles"
        if topic in own:
            yield f"{at}: {topic} is {own[topic]}, which hookbus alone writes"


def _route_problems(config: Config, event_types: Collection[str]) -> Iterator[str]:
    if config.routes and not config.ingress:
        yield "ingress: routes need at least one"
    if (config.routes or config.sinks) and config.dead_letters is None:
        yield "dead_letters: missing; routes and sinks need a topic for what they can't process"
    for name, route in config.routes.items():
        if route.redact and route.capture != "redacted":
            yield f"routes.{name}.redact: goes with capture redacted"
        if route.content is not None:
            found = selection_problems(route.content)
            yield from (f"routes.{name}.content.{problem}" for problem in found)
        try:
            compile_filter(route.match)
        except InvalidFilter as error:
            yield f"routes.{name}.match.{error}"
            continue
        for wanted in _strings(route.match.get("type")):
            if not _may_occur(wanted, event_types):
                hint = _near(wanted, event_types)
                yield f"routes.{name}.match.type: no event type is {wanted}{hint}"


def _strings(wanted: Any) -> Iterable[str]:
    return [w for w in (wanted if isinstance(wanted, list) else [wanted]) if isinstance(w, str)]


def _may_occur(wanted: str, event_types: Collection[str]) -> bool:
    """AEP's categories are open, so only AHP's types are known in full."""
    if wanted.partition(".")[0] in _AEP_CATEGORIES:
        return True
    if wanted.endswith(".*"):
        return any(known.startswith(wanted[:-1]) for known in event_types)
    return wanted in event_types


def _near(name: str, known: Collection[str]) -> str:
    families = {known_name.rpartition(".")[0] + ".*" for known_name in known}
    near = difflib.get_close_matches(name, [*known, *families], n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _backends(sink: SinkConfig) -> list[str]:
    kinds = {"http": sink.http, "file": sink.file, "stdout": sink.stdout, "topic": sink.topic}
    return [kind for kind, backend in kinds.items() if backend is not None]


def _sink_problems(config: Config) -> Iterator[str]:
    written = {route.topic for route in config.routes.values()}
    written |= {sink.topic for sink in config.sinks.values() if sink.topic is not None}
    letters = config.dead_letters.topic if config.dead_letters is not None else None
    written |= {topic for topic in (letters, config.failures and config.failures.topic) if topic}
    for name, sink in config.sinks.items():
        at = f"sinks.{name}"
        if len(_backends(sink)) != 1:
            yield f"{at}: name exactly one of http, file, stdout and topic"
        for topic in sink.topics:
            if config.routes and topic not in written:
                near = difflib.get_close_matches(topic, written, n=1)
                yield f"{at}.topics: nothing writes {topic}" + (
                    f"; did you mean {near[0]}?" if near else ""
                )
        if sink.topic is not None and sink.topic in sink.topics:
            yield f"{at}.topic: is one of its own topics; records would go in circles"
        if sink.http is not None:
            if letters in sink.topics:
                yield f"{at}.topics: dead letters are no events; an AHP backend refuses them"
            yield from (f"{at}.http.{problem}" for problem in _http_problems(sink.http))
    yield from _shared_paths(config)


def _http_problems(http: HttpBackend) -> Iterator[str]:
    problem = url_problem(
        http.url, allow_plain_http=http.allow_plain_http, allow_private=http.allow_private
    )
    if problem:
        yield f"url: {problem}"
    yield from header_problems(http.headers, bearer=http.bearer is not None)
    yield from certificate_problems(http)


def _shared_paths(config: Config) -> Iterator[str]:
    paths = Counter(sink.file.path for sink in config.sinks.values() if sink.file is not None)
    if config.failures is not None:
        paths[config.failures.journal] += 1
    if config.bus.sqlite is not None:
        paths[config.bus.sqlite.path] += 1
    for path, count in paths.items():
        if count > 1:
            yield f"{path}: is named {count} times, as file, journal or bus; each needs its own"


def _audit_problems(config: Config) -> Iterator[str]:
    """No sink may be the only witness of its own failure."""
    if config.failures is None:
        if config.sinks:
            yield "failures: missing; sinks need a topic and a journal for failed deliveries"
        return
    for name in config.failures.journal_only:
        if name not in config.sinks:
            near = difflib.get_close_matches(name, config.sinks, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield f"failures.journal_only: there is no sink {name}{hint}"
    audit = audit_sinks(config)
    for name in config.sinks:
        if name in config.failures.journal_only:
            continue
        if not domains(config).witnesses(name, audit):
            yield (
                f"sinks.{name}: its failures would reach no audit sink (a subscriber of "
                f"{config.failures.topic}) outside its failure domain; subscribe another sink, "
                "or list it in failures.journal_only"
            )
