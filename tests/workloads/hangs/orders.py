# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/dump.md: an `await` is missing."""
import asyncio


async def produce(orders):
    for i in range(3):
        orders.put(i)
        await asyncio.sleep(0)


async def consume(orders):
    while await orders.get() is not None:
        pass


async def main():
    orders = asyncio.Queue()
    consumer = asyncio.create_task(consume(orders), name="consumer")
    await produce(orders)
    await consumer


asyncio.run(main())
