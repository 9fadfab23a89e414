"""The pure parts of replaying: how fast, where to, and at which level."""

import json
import re

import pytest

from hookbus.codecs.headers import read_headers
from hookbus.policies.levels import LEVELS
from hookbus.router import build
from hookbus.router.configuration import plan
from hookbus.router.configuration.config_file import parse
from hookbus.router.replays import build_replay, pace
from hookbus.router.replays.attempts import Place, attempts_of, origin_of, replay_topic, replayed
from hookbus.router.replays.letters import moment
from hookbus.router.types import Record
from tests.corpus import events
from tests.router.configuration.test_config_file import COMPLETE

NOW = 1_800_000_000.0


def route(capture, match="{}"):
    config = parse(f"""
bus: {{sqlite: {{path: bus.db}}}}
ingress: {{agents: {{topics: [in]}}}}
routes: {{siem: {{topic: out, match: {match}, capture: {capture}}}}}
failures: {{topic: failures, journal: journal.db}}
dead_letters: {{topic: dead}}
""")
    pipeline = build.pipeline(config, build.decoder(config))
    return lambda record: pipeline.step(record, build.memory(config)), build_replay.regate(
        config
    ).copies


ROUTES = {level: route(level) for level in LEVELS}


def written(level, event):
    """The record that a route with this ceiling writes of an event."""
    step, _ = ROUTES[level]
    outcome = step(Record("in", 0, 7, 1000, b"k", json.dumps(event).encode()))
    (output,) = [one for one in outcome.outputs if one.topic == "out"]
    return Record("out", 0, 3, 2000, output.key, output.value, output.headers)


def again(level, record):
    copies = ROUTES[level][1](record)
    return copies[0] if isinstance(copies, list) else copies


@pytest.mark.parametrize("name", events.maximal())
@pytest.mark.parametrize("now", LEVELS)
def test_a_full_copy_becomes_what_the_route_would_write_now(name, now):
    """Whatever the route was when it was written."""
    event = events.maximal()[name]
    copy, direct = again(now, written("full", event)), written(now, event)
    assert (copy.key, copy.value, copy.headers) == (direct.key, direct.value, direct.headers)


@pytest.mark.parametrize("before", LEVELS)
@pytest.mark.parametrize("now", LEVELS)
def test_a_copy_never_rises(before, now):
    """A route that was raised since says no more of what it has written."""
    for event in events.maximal().values():
        old = written(before, event)
        copy = again(now, old)
        level = read_headers(copy.headers).capture
        assert LEVELS.index(level) <= LEVELS.index(read_headers(old.headers).capture)
        assert LEVELS.index(level) <= LEVELS.index(now)
        if LEVELS.index(now) >= LEVELS.index(before):
            assert copy.value == old.value


def test_a_route_that_redacts_now_redacts_what_it_wrote_in_full():
    """As it would the event itself."""
    event = events.maximal()["user.message.inbound"]
    step, copies = route("redacted, redact: true")
    (direct,) = step(Record("in", 0, 7, 1000, b"k", json.dumps(event).encode())).outputs
    (copy,) = copies(written("full", event))
    assert (copy.value, copy.headers) == (direct.value, direct.headers)
    assert read_headers(copy.headers).capture == "redacted"


def test_what_no_route_would_write_now_has_no_copy():
    """A route that is gone, one that matches less, and what is no event of ours."""
    old = written("full", events.maximal()["session.end"])
    at = (old.partition, old.offset, old.timestamp, old.key)
    assert again("full", Record("x", *at, old.value, old.headers)) == "no_route"
    assert route("full", "{type: tool.*}")[1](old) == "unmatched"
    assert again("full", Record("out", *at, b"{", old.headers)) == "invalid"
    assert again("full", Record("out", *at, old.value)) == "invalid"


@pytest.mark.parametrize("rate", [0.5, 1, 7, 30, 1000, 50_000, None])
def test_the_rate_is_kept_over_any_time_and_smoothly(rate):
    """Sent at the times that the waits give, no second has more than the rate and one portion."""
    clock, sent, times = 0.0, 0, []
    for _ in range(200):
        clock += pace.wait(sent, rate, clock)
        portion = pace.portion(rate)
        sent += portion
        times.append((clock, portion))
    if rate is None:
        assert clock == 0
        return
    for start, _ in times:
        within = sum(n for at, n in times if start <= at < start + 1)
        assert within <= rate + 2 * pace.portion(rate)
    assert pace.portion(rate) <= max(1, rate / 10)


def test_a_sink_of_any_name_has_a_legal_replay_topic_of_its_own():
    """Also where two names differ only in what a topic may not have, or are very long."""
    names = ["com.example.siem", "a b", "a_b", "a/b", "ü", "ö", "x" * 300, "x" * 301]
    topics = [replay_topic("hookbus", name) for name in names]
    assert topics[0] == "hookbus.replay.com.example.siem"
    assert len(set(topics)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) for topic in topics)


def test_the_plan_names_the_replay_topics_and_keeps_others_out_of_them():
    """What is replayed for one sink is nobody else's, and nobody else writes there."""
    described = {line.get("sink"): line for line in plan.describe(parse(COMPLETE))}
    assert described["com.example.siem"]["replay"] == "hookbus.replay.com.example.siem"
    text = COMPLETE.replace("topic: hookbus.review", "topic: hookbus.replay.com.example.siem")
    found = plan.problems(parse(text), build.known_types())
    assert any(problem.startswith("routes.review.topic: ") for problem in found)
    text = COMPLETE.replace("[hookbus.siem, ", "[hookbus.replay.com.example.siem, ")
    found = plan.problems(parse(text), build.known_types())
    assert any(problem.startswith("sinks.com.example.archive.topics: ") for problem in found)


def test_attempts_and_origin_survive_the_headers():
    """Each replay replaces what the last one wrote; what a stranger wrote there counts nothing."""
    origin = Place("out.siem", 3, 41, 1_700_000_000_000)
    headers = replayed((("user", b"kept"), ("hookbus-attempts", b"-1")), 1, origin)
    assert (attempts_of(headers), origin_of(headers)) == (1, origin)
    headers = replayed(headers, 2)
    assert headers == (("user", b"kept"), ("hookbus-attempts", b"2"))
    for forged in (b"", b"-1", b"1e9", b"9" * 40, "٣".encode()):
        assert attempts_of((("hookbus-attempts", forged),)) == 0
        assert origin_of((("hookbus-origin", b"a/b/" + forged),)) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", NOW - 90),
        ("1.5h", NOW - 5400),
        ("2027-01-15T08:00:00Z", NOW),
        ("2027-01-15T08:00:00", NOW),
        ("2027-01-15T09:00:00.250+01:00", NOW + 0.25),
        ("2027-01-15", NOW - 8 * 3600),
    ],
)
def test_a_moment_is_a_time_or_so_long_ago(text, seconds):
    assert moment(text, lambda: NOW) == seconds * 1000


@pytest.mark.parametrize("text", ["", "soon", "5", "5 parsecs", "2027-13-01", "-5s"])
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        moment(text, lambda: NOW)
