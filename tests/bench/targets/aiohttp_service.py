# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An aiohttp service under load, until it is killed: a third of its requests computes, a third waits
for another service, a third asks a pool of threads. The load comes from a process of its own."""
import asyncio
import concurrent.futures
import os
import time

from aiohttp import ClientSession, web

POOL = concurrent.futures.ThreadPoolExecutor(4, thread_name_prefix="db")
CLIENTS = 8


def render(count):
    return sum(len(str(i)) for i in range(count))


async def on_page(request):
    return web.Response(text=str(render(4000)))


async def on_upstream(request):
    await asyncio.sleep(0.01)
    return web.Response(text="upstream")


def query():
    time.sleep(0.005)
    return render(1000)


async def on_query(request):
    rows = await asyncio.get_running_loop().run_in_executor(POOL, query)
    return web.Response(text=str(rows))


async def ask(session, base):
    while True:
        for path in ("page", "upstream", "query"):
            async with session.get("%s/%s" % (base, path)) as response:
                await response.read()


async def load(base):
    async with ClientSession() as session:
        await asyncio.gather(*(ask(session, base) for _ in range(CLIENTS)))


async def serve(write):
    app = web.Application()
    app.add_routes([web.get("/page", on_page), web.get("/upstream", on_upstream),
                    web.get("/query", on_query)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    os.write(write, b"http://127.0.0.1:%d" % port)
    os.close(write)
    await asyncio.sleep(3600)


def main():
    read, write = os.pipe()
    if not os.fork():
        os.close(write)
        asyncio.run(load(os.read(read, 100).decode()))
        os._exit(0)
    os.close(read)
    asyncio.run(serve(write))


if __name__ == "__main__":
    main()
