"""`delivery: exactly-once` on Apache Kafka, with real routers that are killed, frozen and added.

The moments come from a seed, which is printed; HOOKBUS_EXACT_SEED repeats one, HOOKBUS_EXACT_EVENTS
says how many events run (20000), HOOKBUS_EXACT_KILLS how many routers end (10).
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from hookbus.router.types import Record
from tests.brokers import Broker
from tests.processes import BusKind, Processes, Service, Setup, publish, records, stream, until

EVENTS: Final = int(os.environ.get("HOOKBUS_EXACT_EVENTS", "20000"))
KILLS: Final = int(os.environ.get("HOOKBUS_EXACT_KILLS", "10"))
SOURCES: Final = 16
ROUTES: Final = {"archive": "full", "siem": "metadata"}

pytestmark = pytest.mark.kafka


@pytest.fixture
def exact(broker: Broker, tmp_path: Path) -> Setup:
    """Two routes, settled exactly once."""
    setup = Setup(BusKind("kafka", broker.bootstrap), tmp_path)
    setup.tree["bus"]["delivery"] = "exactly-once"
    for name, capture in ROUTES.items():
        setup.route(name, capture=capture)
    setup.write()
    return setup


@pytest.fixture
def apache(broker: Broker) -> Broker:
    if broker.name != "kafka":
        pytest.skip("transactions need HOOKBUS_TEST_BROKER=kafka")
    return broker


def identities(found: list[Record]) -> list[tuple[str, str]]:
    """Source and id of each record, in order."""
    headers = [dict(record.headers) for record in found]
    return [(one["ce_source"].decode(), one["ce_id"].decode()) for one in headers]


class Copies:
    """What a read_committed reader finds on a route's topic."""

    def __init__(self, setup: Setup, route: str) -> None:
        found = identities(records(setup, route))
        self.total = len(found)
        self.duplicates = len(found) - len(set(found))
        self.by_source: dict[str, list[str]] = defaultdict(list)
        for source, identity in found:
            self.by_source[source].append(identity)


def expected(sent: list[bytes]) -> dict[str, list[str]]:
    """The ids of each source, in the order in which they were sent."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in sent:
        event: dict[str, Any] = json.loads(line)
        found[event["source"]].append(event["id"])
    return dict(found)


def routed(service: Service) -> float:
    """How many events a router has settled, as far as it answers."""
    status, _ = service.get("/metrics")
    if status != 200:
        return 0
    found = service.metrics().by("hookbus_route_events_total", "decision", route="archive")
    return sum(found.values())


def taken(service: Service) -> float:
    """How many records a router has received; those that come again count again."""
    return service.metrics().value("hookbus_received_total", ingress="agents")


def working(routers: list[Service], chance: random.Random) -> Service:
    """One of the routers that have work in hand now; the others may still be joining."""
    before = [routed(router) for router in routers]

    def busy() -> list[Service]:
        return [
            router for router, count in zip(routers, before, strict=True) if routed(router) > count
        ]

    found: list[Service] = until(busy, lambda: f"work; {[one.stderr for one in routers]}")
    return chance.choice(found)


def arrived(setup: Setup, count: int) -> bool:
    return all(len(set(identities(records(setup, route)))) >= count for route in ROUTES)


@contextmanager
def publishing(setup: Setup, portion: list[bytes]) -> Iterator[None]:
    """Events come in while the body runs."""
    with ThreadPoolExecutor(1) as pool:
        published = pool.submit(publish, setup, portion)
        yield
        published.result()


def test_no_copy_is_lost_or_doubled_when_routers_are_killed_and_added(
    apache: Broker, exact: Setup, processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    """A read_committed reader of the route topics sees each event once, in order per source, while
    one of two routers is killed in the middle of its work and another one joins, again and again;
    some of them leave in order."""
    seed = int(os.environ.get("HOOKBUS_EXACT_SEED") or random.randrange(1_000_000))
    chance = random.Random(seed)
    sent = stream(EVENTS, sources=SOURCES)
    begun = time.monotonic()
    routers = [processes.run(exact, "--only", "router").ready() for _ in range(2)]
    size = -(-len(sent) // KILLS)
    ended: list[str] = []
    for start in range(0, len(sent), size):
        with publishing(exact, sent[start : start + size]):
            victim = working(routers, chance)
            time.sleep(chance.uniform(0, 0.1))  # the moment
            gently = chance.random() < 0.25
            victim.stop() if gently else victim.kill()
            ended.append("stopped" if gently else "killed")
            routers.remove(victim)
            routers.append(processes.run(exact, "--only", "router"))
    until(lambda: arrived(exact, len(sent)), "every event on every route", patience=90)
    for router in routers:
        router.stop()
    copies = {route: Copies(exact, route) for route in ROUTES}
    with capsys.disabled():
        counts = ", ".join(f"{n} {c.total} ({c.duplicates} again)" for n, c in copies.items())
        print(
            f"\nexactly once, seed {seed}: {len(sent)} events; routers {', '.join(ended)};"
            f" {counts}; {time.monotonic() - begun:.0f} s"
        )
    for route, found in copies.items():
        assert found.duplicates == 0, (route, seed)
        assert dict(found.by_source) == expected(sent), (route, seed)


def test_a_frozen_router_adds_nothing_when_it_wakes(
    apache: Broker, exact: Setup, processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Frozen past its session in the middle of its work, it finds another one in its place: what
    it had in hand is settled by that one, once, and it goes on as a new member."""
    zombie = processes.run(exact, "--only", "router").ready()
    sent: list[bytes] = []
    elsewhere = again = 0.0

    def everywhere() -> bool:
        return arrived(exact, len(sent))

    for _ in range(5):  # on a busy machine it may be through with its work when it is frozen
        middle, portion = len(sent) + 1000, stream(6000, sources=SOURCES, start=len(sent))
        sent += portion
        with publishing(exact, portion):
            until(lambda: routed(zombie) + elsewhere >= middle, "work")  # noqa: B023
            os.kill(zombie.pid, signal.SIGSTOP)
            other = processes.run(exact, "--only", "router")
            until(everywhere, "every event on every route", patience=90)
        other.ready()
        os.kill(zombie.pid, signal.SIGCONT)
        zombie.ready()
        elsewhere += taken(other)
        other.stop()
        # What the frozen one had in hand was taken once more by the other one.
        again = taken(zombie) + elsewhere - len(sent)
        if again:
            break
    assert again > 0
    more = stream(2000, sources=SOURCES, start=len(sent))
    publish(exact, more)
    sent += more
    until(everywhere, "every event on every route")
    zombie.stop()
    copies = {route: Copies(exact, route) for route in ROUTES}
    with capsys.disabled():
        counts = ", ".join(f"{n} {c.total}" for n, c in copies.items())
        print(f"\nzombie: {counts}, {again:.0f} in hand")
    for found in copies.values():
        assert found.duplicates == 0
        assert dict(found.by_source) == expected(sent)


def test_a_broker_without_transactions_is_refused(
    broker: Broker, exact: Setup, processes: Processes
) -> None:
    """The start fails with exit code 3 and says what to do."""
    if broker.name != "tansu":
        pytest.skip("needs HOOKBUS_TEST_BROKER=tansu")
    router = processes.run(exact, "--only", "router")
    assert router.wait() == 3
    assert "use at-least-once" in router.stderr
