"""A member in a process of its own, for tests that kill it.

worker.py LOCATION hold GROUP TOPIC          receives everything, settles nothing
worker.py LOCATION copy GROUP TOPIC TARGET   copies records to TARGET in small batches
worker.py LOCATION late GROUP TOPIC TARGET   copies, but settles nothing before it gets SIGUSR1
worker.py LOCATION send COUNT TOPIC          publishes so many records, leaves and prints nothing

A member prints 0 once it has joined, and then one line a batch: how many records it has received
so far; one that is late says so also before it settles them.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import rig  # beside this script


async def main(location: str, mode: str, group: str, topic: str, target: str = "") -> None:
    bus = rig.connect(location, session=3.0)  # its death is waited for
    await bus.open([topic, target] if target else [topic])
    if mode == "send":
        await bus.publish(rig.numbered(topic, int(group)))
        await bus.close()
        return
    reader = await bus.reader(group, [topic])
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, told.set)
    count = 0
    print(count, flush=True)
    while True:
        records = await reader.receive(7, 5.0)
        count += len(records)
        if mode == "late" and records:
            print(count, flush=True)
            await told.wait()
        if mode != "hold":
            await reader.settle(rig.done(records, target))
        print(count, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
