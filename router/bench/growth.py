"""What an event costs as the work grows: with routes, with its size, with open questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from hookbus.codecs.strict import encode
from hookbus.policies.correlation import Identity, Moment, Question
from hookbus.router import build
from hookbus.router.bench.budget import Budget
from hookbus.router.bench.events import sessions, six_type_mix
from hookbus.router.bench.in_memory import THREE_ROUTES, stepping
from hookbus.router.bench.timing import Result, Work, alternate, summary
from hookbus.router.configuration.config_file import parse

_ROUTES: Final = (1, 3, 10, 30)
_BYTES: Final = (500, 1_000, 10_000, 100_000)
_EVENTS: Final = 50  # of one size


def growth(budget: Budget) -> list[Result]:
    """Each figure is compared with the first of its row."""
    return [
        *_row({f"growth: routes {n}": _routed(n) for n in _ROUTES}, budget),
        *_row({f"growth: bytes {n:,}": _sized(n) for n in _BYTES}, budget),
        *_row({f"growth: open requests {n:,}": _asked(n) for n in budget.pending}, budget),
    ]


def _row(works: Mapping[str, Work], budget: Budget) -> list[Result]:
    rounds = alternate(works, budget)
    first, *others = works
    return [summary(first, [], rounds), *(summary(name, [first], rounds) for name in others)]


def _routed(count: int) -> Work:
    """All routes match, and each has a copy of its own to make."""
    routes = "\n".join(
        f"  r{n}: {{topic: t{n}, capture: metadata, content: {{default: metadata, c{n}: omit}}}}"
        for n in range(count)
    )
    head, _, rest = THREE_ROUTES.partition("routes:\n")
    text = f"{head}routes:\n{routes}\n{rest[rest.index('dead_letters') :]}"
    return stepping(six_type_mix(), text, copies=count)


def _sized(size: int) -> Work:
    """Events of so many bytes, nearly all of them one text."""
    event = json.loads(six_type_mix()[0])
    (part,) = event["items"][0]["parts"]
    text, part["text"] = part["text"] + " ", ""
    left = size - len(encode(event))
    part["text"] = (text * (left // len(text) + 1))[:left]
    return stepping([encode(event)] * _EVENTS)


def _asked(count: int) -> Work:
    """Sessions with a question and an answer each, while so many other questions are open."""
    memory = build.memory(parse(THREE_ROUTES))
    question = Question("session", "server", "form", "2026-01-01T00:00:00Z")
    for number in range(count):
        memory.pending.ask(Identity("urn:open", str(number)), question, Moment(number, 0))
    return stepping([one.value for one in sessions(0, 100)], memory=memory)
