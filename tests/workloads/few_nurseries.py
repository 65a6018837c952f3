# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A few tasks of trio, as few_awaits.py has them of asyncio.

Prints READY and stays.
"""
import trio


async def leaf():
    await trio.sleep(3600)


async def numbers():
    yield await leaf()


async def over_numbers():
    async for _ in numbers():
        pass


async def parent():
    lock = trio.Lock()
    await lock.acquire()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(over_numbers, name="first")
        nursery.start_soon(wants, lock, name="second")


async def wants(lock):
    await lock.acquire()


class WhenIdle(trio.abc.Instrument):
    def before_io_wait(self, timeout):
        if timeout > 1:
            print("READY", flush=True)


async def main():
    trio.lowlevel.add_instrument(WhenIdle())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(parent, name="parent")


trio.run(main)
