"""What supervisor and workers say to each other arrives as it was sent."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from hookbus.router.configuration import config_file
from hookbus.router.configuration.units import Duration, Size
from hookbus.router.processes.part import choose
from hookbus.router.processes.workers.channel import Channel, Order, Prepare, Start, Stop

EXAMPLES = sorted((Path(__file__).parents[4] / "deploy/examples").glob("*.yaml"))


async def pair() -> tuple[Channel[Order], Channel[Order]]:
    one, other = socket.socketpair()
    return await Channel.open(one, Order), await Channel.open(other, Order)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_configuration_arrives_whole(path: Path) -> None:
    """With its durations, its sizes and its references."""

    async def play() -> None:
        ours, theirs = await pair()
        config = config_file.load(path)
        part = choose(config, [])
        start = Start("router-1", 1, "0.1.0", config, part, "info")
        ours.send(start)
        ours.send(Prepare(7, config, part))
        assert await theirs.receive() == start
        assert await theirs.receive() == Prepare(7, config, part)
        await ours.close()
        await theirs.close()

    asyncio.run(play())


def test_durations_and_sizes_stay_what_they_are() -> None:
    async def play() -> None:
        ours, theirs = await pair()
        config = config_file.load(EXAMPLES[0])
        ours.send(Prepare(1, config, choose(config, [])))
        received = await theirs.receive()
        assert isinstance(received, Prepare)
        assert isinstance(received.config.shutdown_grace, Duration)
        assert isinstance(received.config.limits.max_bytes, Size)
        await ours.close()
        await theirs.close()

    asyncio.run(play())


def test_the_end_of_the_other_side_is_noticed_after_all_that_it_sent() -> None:
    async def play() -> None:
        ours, theirs = await pair()
        ours.send(Stop())
        await ours.close()
        assert await theirs.receive() == Stop()
        assert await theirs.receive() is None
        await theirs.close()

    asyncio.run(play())


def test_who_sends_to_an_end_that_is_gone_doesn_t_notice() -> None:
    async def play() -> None:
        ours, theirs = await pair()
        await theirs.close()
        for _ in range(20):
            ours.send(Stop())
            await asyncio.sleep(0)
        assert await ours.receive() is None
        await ours.close()

    asyncio.run(play())
