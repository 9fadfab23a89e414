"""What only a broker can do to us: be away, freeze, refuse, or lack a feature."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from hookbus.router.buses.kafka import KafkaBus
from hookbus.router.buses.kafka_codecs import codecs
from hookbus.router.buses.kafka_reader import KafkaReader
from hookbus.router.buses.kafka_settings import KafkaSettings, NewTopics
from hookbus.router.errors import BusFatal, BusUnavailable, OutputTooLarge
from hookbus.router.types import Output, Settlement
from tests.brokers import Broker, free_port
from tests.router.buses.rig import collect, done, fresh, numbered, numbers, scanned, until

pytestmark = pytest.mark.kafka


def settings(bootstrap: str, **changes: object) -> KafkaSettings:
    values: dict[str, object] = {
        "request_timeout": 4.0,
        "session_timeout": 10.0,
        "close_timeout": 2.0,
        **changes,
    }
    return KafkaSettings(bootstrap_servers=bootstrap, **values)  # type: ignore[arg-type]


@asynccontextmanager
async def opened(bootstrap: str, *topics: str, **changes: object) -> AsyncIterator[KafkaBus]:
    """A bus with these topics, which are made before: that takes its time on a busy machine, and is
    not what tests with short timeouts are about."""
    new = NewTopics(4, 1)
    patient = KafkaBus(
        settings(bootstrap, **{**changes, "request_timeout": 30.0}), create_topics=new
    )
    try:
        await patient.open(topics)
    finally:
        await patient.close()
    bus = KafkaBus(settings(bootstrap, **changes), create_topics=new)
    try:
        await bus.open(topics)
        yield bus
    finally:
        await bus.close()


async def _open(bootstrap: str) -> None:
    bus = KafkaBus(settings(bootstrap))
    try:
        await bus.open(["in"])
    finally:
        await bus.close()


async def test_an_unreachable_broker_is_unavailable_at_once() -> None:
    """Nobody listens: the start fails within its deadline, and so does the end (aiokafka #1101)."""
    with pytest.raises(BusUnavailable):
        await _open(f"127.0.0.1:{free_port()}")


async def test_a_silent_server_is_unavailable_in_time() -> None:
    """Somebody accepts the connection and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with pytest.raises(BusUnavailable):
            await _open(f"127.0.0.1:{server.getsockname()[1]}")


async def test_a_frozen_broker_costs_a_retry_and_no_record(broker: Broker) -> None:
    """While nothing answers, a settlement fails within its deadline; the same call, repeated when
    the broker is back, is complete."""
    topic, target, group = fresh("in"), fresh("out"), fresh("g")
    async with opened(broker.bootstrap, topic, target) as bus:
        await bus.publish(numbered(topic, 20))
        reader = await bus.reader(group, [topic])
        records = await collect(reader, 20)
        broker.pause()
        try:
            with pytest.raises(BusUnavailable):
                await reader.settle(done(records, target))
        finally:
            broker.resume()

        async def settled() -> bool:
            try:
                await reader.settle(done(records, target))
            except BusUnavailable:
                return False
            return True

        await until(settled)
        assert set(numbers(await scanned(bus, target))) == set(range(20))
        await reader.close()
        reader = await bus.reader(group, [topic])
        assert await reader.receive(10, 1.0) == []


async def test_closing_does_not_wait_for_a_frozen_broker(broker: Broker) -> None:
    """The end is bounded, and commits nothing: what was in hand comes again (case C87)."""
    topic, group = fresh("in"), fresh("g")
    soon_dead = settings(broker.bootstrap, session_timeout=3.0)
    bus = KafkaBus(soon_dead, create_topics=NewTopics(4, 1))
    await bus.open([topic])
    await bus.publish(numbered(topic, 20))
    reader = await bus.reader(group, [topic])
    await collect(reader, 20)
    broker.pause()
    try:
        await bus.close()
    finally:
        broker.resume()
    async with opened(broker.bootstrap, topic, request_timeout=8.0) as again:
        reader = await again.reader(group, [topic])
        assert sorted(numbers(await collect(reader, 20))) == list(range(20))


async def test_a_slow_caller_keeps_its_place_and_a_bounded_buffer(broker: Broker) -> None:
    """A record may be held longer than a session: the member stays, and no more than a buffer is
    read ahead meanwhile."""
    topic, group = fresh("in"), fresh("g")
    async with opened(broker.bootstrap, topic, session_timeout=10.0) as bus:
        for first in range(0, 6000, 1000):
            await bus.publish(numbered(topic, 1000, keys=64, first=first))
        reader = await bus.reader(group, [topic])
        assert isinstance(reader, KafkaReader)
        held = await collect(reader, 100)
        await until(lambda: reader.buffered == 2000, what="a full buffer")
        await asyncio.sleep(11)  # longer than a session: the point of the test
        assert reader.buffered == 2000
        await reader.settle(done(held))
        rest = await collect(reader, 5900, limit=500)
        await reader.settle(done(rest))
        assert sorted(numbers(held + rest)) == list(range(6000))
        assert sum((await reader.lag()).values()) == 0


async def test_a_record_that_is_too_large_is_refused_before_anything_is_sent(
    broker: Broker,
) -> None:
    """The error comes first, so that the caller can replace the record and settle again."""
    topic, target = fresh("in"), fresh("out")
    async with opened(broker.bootstrap, topic, target) as bus:
        big = Output(target, b"k", b"x" * (1024 * 1024))
        with pytest.raises(OutputTooLarge):
            await bus.publish([*numbered(target, 3), big])
        await bus.publish(numbered(topic, 1))
        reader = await bus.reader(fresh("g"), [topic])
        (record,) = await collect(reader, 1)
        with pytest.raises(OutputTooLarge):
            await reader.settle([Settlement(record, (*numbered(target, 3), big))])
        assert await scanned(bus, target) == []
        await reader.settle([Settlement(record, tuple(numbered(target, 3)))])
        assert len(await scanned(bus, target)) == 3


async def test_the_largest_allowed_record_passes(broker: Broker) -> None:
    """The default limit leaves enough room for the envelope."""
    topic = fresh("in")
    async with opened(broker.bootstrap, topic) as bus:
        limit = settings("x").max_message_bytes
        await bus.publish([Output(topic, b"k", b"x" * (limit - 200), (("h", b"v"),))])
        assert len(await scanned(bus, topic)) == 1


async def test_a_broker_without_idempotence_is_used_with_one_warning(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """The fallback is never silent, and never repeated."""
    topic = fresh("in")
    bus = KafkaBus(settings(broker.bootstrap), create_topics=NewTopics(4, 1))
    with caplog.at_level(logging.WARNING, "hookbus.bus"):
        try:
            await bus.open([topic])
            await bus.publish(numbered(topic, 3))
            await bus.publish(numbered(topic, 3))
        finally:
            await bus.close()
    warnings = [one for one in caplog.messages if "no idempotent producers" in one]
    assert len(warnings) == (1 if broker.name == "tansu" else 0)


async def test_batches_can_be_compressed(broker: Broker) -> None:
    """gzip needs nothing but the standard library."""
    topic = fresh("in")
    async with opened(broker.bootstrap, topic, compression="gzip") as bus:
        await bus.publish(numbered(topic, 500))
        assert sorted(numbers(await scanned(bus, topic))) == list(range(500))


@pytest.mark.parametrize("compression", ["snappy", "lz4", "zstd"])
async def test_other_compressions_need_a_package(
    broker: Broker, compression: Literal["snappy", "lz4", "zstd"]
) -> None:
    """With it they are written and read."""
    if compression not in codecs():
        pytest.skip("the extra `compression` is not installed")
    topic = fresh("in")
    async with opened(broker.bootstrap, topic, compression=compression) as bus:
        await bus.publish(numbered(topic, 500))
        assert sorted(numbers(await scanned(bus, topic))) == list(range(500))


async def test_unusable_tls_files_are_fatal() -> None:
    """A certificate that isn't there won't appear by waiting."""
    with pytest.raises(BusFatal):
        async with opened("127.0.0.1:9", "in", protocol="SSL", ca_file="/nowhere/ca.pem"):
            pass


def test_settings_do_not_show_their_password() -> None:
    """Settings end up in tracebacks."""
    hidden = "hush"
    assert hidden not in repr(settings("broker:9092", username="u", password=hidden))
