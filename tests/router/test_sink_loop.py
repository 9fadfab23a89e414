"""A sink loop on a real bus, in front of a real HTTP backend that can be broken."""

import asyncio
import base64
import contextlib
import json
import time

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from hookbus.codecs.headers import Attributes, write_headers
from hookbus.policies.failures import Domains
from hookbus.router.buses.sqlite import SqliteBus
from hookbus.router.configuration.config import DeadLetters
from hookbus.router.configuration.config_file import parse
from hookbus.router.dead_letters import DeadLetterOffice
from hookbus.router.journal import CHANGELOGS, FORWARDED, KEPT, TOPICS, Journal
from hookbus.router.outages import Terms
from hookbus.router.sink_loop import SinkLoop
from hookbus.router.sinks.http import HttpSink
from hookbus.router.telemetry.metrics import Metrics
from hookbus.router.telemetry.progress import Progress
from hookbus.router.types import Output

NAME = "com.example.siem"
DOMAINS = Domains({NAME: "siem", "com.example.mirror": "siem", "com.example.other": "other"})
CONFIG = parse(f"bus: {{}}\nsinks: {{{NAME}: {{topics: [in], policy: fail-open}}}}")
PATIENCE = 60
LARGEST = 3000
"""Bytes of a record that the bus takes; the configuration says more."""


class Backend:
    """Answers each event with the next of `answers`, the last one for good; `headers` go with it.
    An answer of None is a 204 that waits until it is `released`."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.headers = {}
        self.released = asyncio.Event()
        self.asked = []
        self.taken = []

    async def __aenter__(self):
        app = web.Application()
        app.router.add_post("/hooks", self.answer)
        self.runner = web.AppRunner(app, access_log=None)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}/hooks"
        return self

    async def __aexit__(self, *_):
        await self.runner.cleanup()

    async def answer(self, request):
        event = (await request.json())["params"]["event"]
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.asked.append(event["id"])
        if status is None:
            await self.released.wait()
            status = 204
        if status == 204:
            self.taken.append(event["id"])
        return web.Response(status=status, headers=self.headers)


def event(number, kind="session.end", **more):
    value = {
        "id": f"e{number}", "source": "urn:agent:1", "type": kind, "time": "2026-11-29T10:00:00Z",
        "harness": {"name": "h", "version": "1"}, "session": {"id": "s1"}, **more,
    }  # fmt: skip
    headers = write_headers(
        Attributes(id=value["id"], source=value["source"], type=kind, capture="metadata")
    )
    return Output("in", b"urn:agent:1", json.dumps(value).encode(), headers)


def spread(first, count):
    """Events with a key each, so that they are in many partitions."""
    return [
        Output(one.topic, b"%d" % number, one.value, one.headers)
        for number, one in enumerate(map(event, range(first, first + count)))
    ]


def failure_of(number, backend):
    failure = {"backendId": backend, "reason": "timeout", "policy": "fail-open"}
    return event(number, "hook.failure", failure=failure, parentEventId="x")


class Rig:
    """One sink loop with everything it needs, running."""

    def __init__(
        self,
        tmp_path,
        backend,
        *,
        policy,
        deadline,
        delays,
        timeout,
        concurrent,
        partitions,
    ):
        self.bus = SqliteBus(tmp_path / "bus.db", partitions=partitions, max_message=LARGEST)
        self.journal = SqliteBus(tmp_path / "journal.db", partitions=1)
        self.backend, self.policy, self.deadline = backend, policy, deadline
        self.first_delay, self.longest_delay = delays
        self.timeout, self.concurrent = timeout, concurrent
        self.passed = 0.0
        self.registry = CollectorRegistry()
        self.stop = asyncio.Event()

    async def __aenter__(self):
        await self.bus.open(["in", "dead"])
        await self.journal.open(TOPICS, CHANGELOGS)
        self.reader = await self.bus.reader("sink", ["in"])
        self.sink = HttpSink(NAME, self.backend.url)
        self.sink.concurrent = self.concurrent
        await self.sink.open()
        self.progress = Progress(lambda: time.monotonic() + self.passed, PATIENCE)
        loop = SinkLoop(
            self.reader,
            self.sink,
            Terms(
                name=NAME, policy=self.policy, timeout=self.timeout, deadline=self.deadline,
                first_delay=self.first_delay, longest_delay=self.longest_delay, forward=True,
            ),
            domains=DOMAINS,
            office=DeadLetterOffice(DeadLetters(topic="dead", capture="full"), 10**6),
            journal=Journal(self.journal, version="0", now=time.time),
            metrics=Metrics(self.registry, CONFIG, ("session.end",), "0"),
            progress=self.progress,
            clock=time.monotonic,
        )  # fmt: skip
        self.task = asyncio.create_task(loop.run(self.stop))
        return self

    async def __aexit__(self, *_):
        await self.told_to_stop()
        await self.reader.close()
        await self.sink.close()
        await self.bus.close()
        await self.journal.close()

    async def told_to_stop(self):
        self.stop.set()
        await asyncio.wait_for(self.task, PATIENCE)

    async def stopped_at_an_event(self):
        async def stopped():
            return self.metric("hookbus_sink_stopped") == 1

        await until(stopped)

    async def topic(self, name, bus=None):
        return [
            json.loads(record.value) async for record in (bus or self.bus).scan(name, follow=False)
        ]

    async def failures(self, topic=FORWARDED):
        return await self.topic(topic, self.journal)

    async def passed_everything(self):
        """Wait until the group has passed all records, and the loop has nothing in hand: what
        follows from a settlement is done and counted."""

        async def nothing_left():
            lag = sum((await self.reader.lag()).values())
            return lag == self.in_flight() == 0

        await until(nothing_left)

    def in_flight(self):
        return self.registry.get_sample_value("hookbus_in_flight", {"loop": f"sink:{NAME}"})

    def metric(self, name, **labels):
        return self.registry.get_sample_value(name, {"sink": NAME, **labels})


async def until(condition):
    async with asyncio.timeout(PATIENCE):
        while not await condition():
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def rig(
    tmp_path, *answers, policy="fail-open", deadline=0.15, delays=(0.01, 0.05),
    timeout=PATIENCE,  # noqa: ASYNC109 - passed on
    concurrent=True, partitions=1,
):  # fmt: skip
    """`passed` are seconds that its progress takes to have passed."""
    async with (
        Backend(*answers) as backend,
        Rig(
            tmp_path, backend, policy=policy, deadline=deadline, delays=delays, timeout=timeout,
            concurrent=concurrent, partitions=partitions,
        ) as made,
    ):  # fmt: skip
        yield made


def run(test):
    asyncio.run(asyncio.wait_for(test, 3 * PATIENCE))


def test_records_are_delivered_in_order_and_settled(tmp_path):
    """Each event once, none left."""

    async def play():
        async with rig(tmp_path, 204) as r:
            await r.bus.publish([event(n) for n in range(50)])
            await r.passed_everything()
            assert r.backend.taken == [f"e{n}" for n in range(50)]
            assert r.metric("hookbus_sink_records_total", outcome="delivered") == 50
            assert await r.failures() == []

    run(play())


def test_a_route_fault_is_retried_and_leaves_no_trace_if_it_ends_in_time(tmp_path):
    """A hiccup is no failure."""

    async def play():
        async with rig(tmp_path, 503, 503, 204, deadline=PATIENCE) as r:
            await r.bus.publish([event(1), event(2)])
            await r.passed_everything()
            assert r.backend.asked == ["e1", "e1", "e1", "e2"]
            assert await r.failures() == await r.topic("dead") == []
            assert r.metric("hookbus_sink_faults_total", reason="server_error") == 2
            assert r.metric("hookbus_sink_up") == 1

    run(play())


@pytest.mark.parametrize("policy", ["fail-open", "fail-closed"])
def test_a_message_fault_is_dead_lettered_at_once_under_either_policy(tmp_path, policy):
    """The backend's judgement of one event holds up no other."""

    async def play():
        async with rig(tmp_path, 204, 422, 204, policy=policy, deadline=PATIENCE) as r:
            await r.bus.publish([event(n) for n in (1, 2, 3)])
            await r.passed_everything()
            assert r.backend.asked == ["e1", "e2", "e3"]
            (letter,) = await r.topic("dead")
            assert (letter["fault"], letter["reason"], letter["sink"], letter["offset"]) == (
                "message_fault", "refused", NAME, 1,
            )  # fmt: skip
            (failure,) = await r.failures()
            assert failure["parentEventId"] == "e2"

    run(play())


def test_a_dead_letter_that_the_bus_refuses_is_written_without_bytes(tmp_path):
    """The record would come again and again, and end the loop each time."""

    async def play():
        async with rig(tmp_path, 422, deadline=PATIENCE) as r:
            await r.bus.publish([event(1), event(2, reason="x" * 2500)])
            await r.passed_everything()
            small, large = await r.topic("dead")
            assert json.loads(base64.b64decode(small["value"]))["id"] == "e1"
            assert "value" not in large
            assert (large["offset"], large["reason"]) == (1, "refused")
            assert r.metric("hookbus_sink_records_total", outcome="dead_lettered") == 2

    run(play())


def test_fail_open_dead_letters_after_the_deadline_and_goes_on(tmp_path):
    """One dead letter and one hook failure for each event that was skipped."""

    async def play():
        async with rig(tmp_path, 500) as r:
            await r.bus.publish([event(n) for n in (1, 2, 3)])
            await r.passed_everything()
            letters = await r.topic("dead")
            assert [letter["fault"] for letter in letters] == ["route_fault"] * 3
            failures = await r.failures()
            assert [failure["parentEventId"] for failure in failures] == ["e1", "e2", "e3"]
            assert failures[0]["failure"] == {
                "backendId": NAME, "reason": "server_error", "policy": "fail-open",
            }  # fmt: skip
            assert failures[0]["source"] == "urn:agent:1"
            assert failures[0]["session"] == {"id": "s1"}
            assert len({failure["id"] for failure in failures}) == 3
            assert r.metric("hookbus_sink_up") == 0

    run(play())


def test_fail_closed_stays_at_the_event_and_records_one_failure(tmp_path):
    """Nothing is skipped, and probing doesn't multiply the record."""

    async def play():
        async with rig(tmp_path, 500, policy="fail-closed") as r:
            await r.bus.publish([event(1), event(2)])

            async def stopped():
                return r.metric("hookbus_sink_stopped") == 1 and len(r.backend.asked) > 10

            await until(stopped)
            assert set(r.backend.asked) == {"e1"}
            assert len(await r.failures()) == 1
            assert await r.topic("dead") == []
            assert not r.progress.delivering
            r.backend.answers = [204]
            await r.passed_everything()
            assert r.backend.taken == ["e1", "e2"]
            assert len(await r.failures()) == 1
            assert r.metric("hookbus_sink_stopped") == 0
            assert r.progress.delivering

    run(play())


def test_a_stopped_sink_stops_at_once_when_told_to(tmp_path):
    """A probe that waits doesn't hold up a shutdown, and the event comes again."""

    async def play():
        async with rig(tmp_path, 500, policy="fail-closed", delays=(3600, 3600)) as r:
            await r.bus.publish([event(1)])

            await r.stopped_at_an_event()
            await r.told_to_stop()
            assert sum((await r.reader.lag()).values()) == 1

    run(play())


@pytest.mark.parametrize("concurrent", [True, False])
def test_a_loop_that_has_ended_shows_nothing_as_stopped_or_held_up(tmp_path, concurrent):
    """Its partitions are still its own then; the loop that follows it, under the same name, may
    have a backend that works."""

    async def play():
        async with rig(tmp_path, 500, policy="fail-closed", concurrent=concurrent) as r:
            await r.bus.publish([event(1)])

            await r.stopped_at_an_event()
            await r.told_to_stop()
            assert r.reader.assigned()
            assert r.metric("hookbus_sink_stopped") == 0
            assert r.in_flight() == 0
            assert r.progress.delivering

    run(play())


def test_a_wait_that_the_backend_asked_for_is_alive(tmp_path):
    """It may be longer than a loop may otherwise stand still."""

    async def play():
        async with rig(tmp_path, 503, deadline=7200, delays=(3600, 3600)) as r:
            r.backend.headers["Retry-After"] = "3600"
            await r.bus.publish([event(1)])

            async def waiting():
                return not r.progress.delivering

            await until(waiting)
            r.passed = 3600
            assert r.progress.stuck() == []
            r.passed += PATIENCE + 1
            assert [partition.topic for partition in r.progress.stuck()] == ["in"]

    run(play())


def test_an_attempt_that_may_take_long_is_alive(tmp_path):
    """For as long as its timeout lets it."""

    async def play():
        async with rig(tmp_path, None, timeout=3600) as r:
            await r.bus.publish([event(1)])

            async def asked():
                return r.backend.asked

            await until(asked)
            r.passed = 3600 - PATIENCE
            assert r.progress.stuck() == []
            r.passed = 3600 + PATIENCE
            assert [partition.topic for partition in r.progress.stuck()] == ["in"]
            r.backend.released.set()
            await r.passed_everything()

    run(play())


def test_a_partition_whose_records_are_all_delivered_waits_for_no_other(tmp_path):
    """A sink that delivers in one sequence stays at one event, and only its partition stays."""

    async def play():
        async with rig(
            tmp_path, 204, 204, 204, 500, policy="fail-closed", concurrent=False, partitions=8
        ) as r:
            await r.bus.publish(spread(0, 30))

            async def asked():
                return len(r.backend.asked) > 10

            await until(asked)
            r.passed = 2 * PATIENCE
            r.backend.asked.clear()
            await until(asked)
            assert r.progress.stuck() == []

    run(play())


def test_a_partition_whose_records_an_attempt_delivered_waits_with_the_others(tmp_path):
    """The attempt met a fault after them, and the sink waits before the next one."""

    async def play():
        async with rig(
            tmp_path, *[204] * 20, 503, deadline=7200, delays=(3600, 3600), concurrent=False,
            partitions=8,
        ) as r:  # fmt: skip
            r.backend.headers["Retry-After"] = "3600"
            await r.bus.publish(spread(0, 30))

            async def waiting():
                return not r.progress.delivering

            await until(waiting)
            r.passed = 3600
            assert r.progress.stuck() == []

    run(play())


def test_a_partition_that_others_have_taken_over_holds_a_sink_up_no_more(tmp_path):
    """Nothing of it would ever come and show that the backend answers again."""

    async def play():
        async with rig(tmp_path, 500, partitions=8) as r:
            await r.bus.publish(spread(0, 100))
            await r.passed_everything()
            assert not r.progress.delivering
            other = await r.bus.reader("sink", ["in"])

            async def shared():
                await other.receive(1, 0.05)
                return len(r.reader.assigned()) == len(other.assigned()) == 4

            await until(shared)
            r.backend.answers = [204]
            await r.bus.publish(spread(100, 100))

            async def delivering():
                return r.progress.delivering

            await until(delivering)
            await other.close()

    run(play())


def test_no_backend_is_handed_a_failure_of_its_own_domain(tmp_path):
    """It is never the one relied on for the record that it failed."""

    async def play():
        async with rig(tmp_path, 204) as r:
            await r.bus.publish(
                [
                    failure_of(1, NAME),
                    failure_of(2, "com.example.mirror"),
                    failure_of(3, "com.example.other"),
                    failure_of(4, "org.stranger"),
                    event(5),
                ]
            )
            await r.passed_everything()
            assert r.backend.taken == ["e3", "e4", "e5"]
            assert r.metric("hookbus_sink_records_total", outcome="excluded") == 2

    run(play())


def test_a_failure_to_deliver_a_failure_stays_in_the_journal(tmp_path):
    """There is no chain of failures of failures."""

    async def play():
        async with rig(tmp_path, 500) as r:
            await r.bus.publish([failure_of(1, "com.example.other")])
            await r.passed_everything()
            assert await r.failures() == []
            (kept,) = await r.failures(KEPT)
            assert kept["parentEventId"] == "e1"

    run(play())


def test_a_record_without_identity_is_recorded_by_its_coordinates(tmp_path):
    """What a sink subscribes to need not have come through the router."""

    async def play():
        async with rig(tmp_path, 400) as r:
            await r.bus.publish([Output("in", None, b'{"no": "event"}')])
            await r.passed_everything()
            (failure,) = await r.failures()
            assert (failure["source"], failure["parentEventId"]) == ("urn:hookbus:in", "0-0")

    run(play())
