# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A few tasks, for an image of their memory (tests/inspect/task_image.c): what fuzz targets begin with.

Prints READY and stays.
"""
import asyncio


async def leaf():
    await asyncio.sleep(3600)


async def numbers():
    yield await leaf()


async def over_numbers():
    async for _ in numbers():
        pass


async def parent():
    first = asyncio.create_task(over_numbers(), name="first")
    lock = asyncio.Lock()
    await lock.acquire()
    second = asyncio.create_task(lock.acquire(), name="second")
    await asyncio.gather(asyncio.wait([first]), second)


async def main():
    asyncio.get_running_loop().slow_callback_duration = 3600
    made = asyncio.create_task(parent(), name="parent")
    asyncio.get_running_loop().call_later(0.2, print, "READY")
    await asyncio.shield(made)


asyncio.run(main(), debug=True)
