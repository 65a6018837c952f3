# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# For compiled_awaits.py, by Cython.
import asyncio


async def rests(seconds):
    await asyncio.sleep(seconds)


async def over(numbers):
    async for _ in numbers:
        pass


async def numbers():
    yield 1
    await rests(3600)


class Thing:
    async def method(self, coroutine):
        await coroutine
