# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tasks that wait, in every way that asyncio has, and that stay so.

    awaits.py all [TASKS]     every kind of await, and as many tasks that only sleep, below six frames
    awaits.py python          the same, of tasks that Python implements
    awaits.py uvloop          the same, on uvloop
    awaits.py debug           the same, in asyncio's debug mode
    awaits.py anyio           task groups of anyio, on asyncio
    awaits.py cycle           three tasks, each of which waits for the next
    awaits.py blocked         one task blocks its loop: all others are ready to run
    awaits.py computing       one task computes and never gives its loop back
    awaits.py many TASKS      gathered by twenties
    awaits.py churn           tasks that come and go as fast as they can, of known chains

Truth: {"tasks": {name: {"chain": [[function, line]...], "parents": [name...], "for": type}}}: what a
callback of the loop sees, when nothing moves any more: root first, down to the innermost await, by what
the coroutines themselves say they wait for; "parents" as the program made them.
"""
import asyncio
import concurrent.futures
import gc
import json
import os
import socket
import sys
import threading
import types

MINOR = sys.version_info[1]
never = threading.Event()
box = {}
tasks, parents = {}, {}
MODE = sys.argv[1] if len(sys.argv) > 1 else "all"


def task(name, coro, *of):
    """A new task, and the names of those who will wait for it."""
    loop = asyncio.get_running_loop()
    kind = asyncio.tasks._PyTask if MODE == "python" else None
    made = kind(coro, loop=loop, name=name) if kind else asyncio.create_task(coro, name=name)
    tasks[name] = made
    parents[name] = sorted(of)
    return made


async def sleeper():
    await asyncio.sleep(3600)


async def deep(n):
    if n:
        return await deep(n - 1)
    await sleeper()


class Awaitable:
    def __await__(self):
        yield from asyncio.sleep(3600).__await__()


class Wrapped:
    def __await__(self):
        return sleeper().__await__()


@types.coroutine
def old_style():
    yield from box["future"]


async def numbers():
    yield 1
    await sleeper()
    yield 2


async def over_numbers():
    async for _ in numbers():
        pass


async def by_asend():
    agen = numbers()
    await agen.__anext__()
    await agen.asend(None)


async def by_athrow():
    async def stubborn():
        try:
            yield 1
        except ValueError:
            await sleeper()
            yield 2
    agen = stubborn()
    await agen.__anext__()
    await agen.athrow(ValueError)


async def by_anext():
    agen = numbers()
    await anext(agen, None)
    await anext(agen, None)


async def of_awaitable():
    await Awaitable()


async def of_wrapped():
    await Wrapped()


async def of_old_style():
    await old_style()


async def with_context():
    class Context:
        async def __aenter__(self):
            await sleeper()

        async def __aexit__(self, *_):
            pass
    async with Context():
        pass


async def in_comprehension():
    return [x async for x in numbers()]


async def lock_acquire():
    async with box["lock"]:
        pass


async def semaphore_acquire():
    async with asyncio.Semaphore(0):
        pass


async def condition_wait():
    condition = asyncio.Condition()
    async with condition:
        await condition.wait()


async def event_wait():
    await asyncio.Event().wait()


async def queue_get():
    await asyncio.Queue().get()


async def queue_put():
    queue = asyncio.Queue(1)
    await queue.put(1)
    await queue.put(2)


async def queue_join():
    queue = asyncio.Queue()
    queue.put_nowait(1)
    await queue.join()


async def barrier_wait():
    await asyncio.Barrier(2).wait()


async def future_await():
    await box["future"]


async def executor_await():
    await asyncio.get_running_loop().run_in_executor(box["pool"], never.wait)


async def to_thread():
    await asyncio.to_thread(never.wait)


async def socket_recv():
    loop = asyncio.get_running_loop()
    here, box["there"] = socket.socketpair()
    here.setblocking(False)
    await loop.sock_recv(here, 1)


async def stream_read():
    here, box["peer"] = socket.socketpair()
    reader, box["writer"] = await asyncio.open_connection(sock=here)
    await reader.readline()


async def serve():
    here = socket.create_server(("127.0.0.1", 0))  # no name to look up: that would take a thread
    server = await asyncio.start_server(lambda r, w: None, sock=here)
    async with server:
        await server.serve_forever()


async def gather_parent():
    await asyncio.gather(*[task("gather-%d" % i, sleeper(), "gather") for i in range(3)])


async def gather_nested():
    inner = asyncio.gather(task("nested-1", sleeper(), "nested"), task("nested-2", deep(2), "nested"))
    await asyncio.gather(inner, task("nested-3", sleeper(), "nested"))


async def wait_parent():
    await asyncio.wait([task("wait-%d" % i, sleeper(), "wait") for i in range(2)])


async def wait_for_parent():
    await asyncio.wait_for(task("wait_for-child", sleeper(), "wait_for"), 3600)


async def shield_parent():
    await asyncio.shield(task("shield-child", sleeper(), "shield"))


async def await_task():
    await task("awaited", sleeper(), "await")


async def chain_of_tasks():
    async def middle():
        await task("chain-3", sleeper(), "chain-2")
    await task("chain-2", middle(), "chain-1")


async def shared_parent():
    await box["shared"]


async def group_parent():
    async with asyncio.TaskGroup():
        task("not-of-group", sleeper())
        async with asyncio.TaskGroup() as group:
            for i in range(2):
                name = "group-%d" % i
                tasks[name] = group.create_task(deep(1), name=name)
                parents[name] = ["group"]


async def timeout_parent():
    async with asyncio.timeout(3600):
        await sleeper()


async def as_completed_parent():
    for first in asyncio.as_completed([task("as_completed-%d" % i, sleeper(), "as_completed")
                                       for i in range(2)]):
        await first


KINDS = {
    "sleep": sleeper, "deep": lambda: deep(5), "awaitable": of_awaitable, "wrapped": of_wrapped,
    "types.coroutine": of_old_style, "async for": over_numbers, "asend": by_asend,
    "athrow": by_athrow, "async with": with_context, "comprehension": in_comprehension,
    "lock": lock_acquire, "semaphore": semaphore_acquire, "condition": condition_wait,
    "event": event_wait, "queue.get": queue_get, "queue.put": queue_put, "queue.join": queue_join,
    "future": future_await, "executor": executor_await, "sock_recv": socket_recv,
    "stream": stream_read, "serve": serve, "gather": gather_parent, "nested": gather_nested,
    "wait": wait_parent, "wait_for": wait_for_parent, "shield": shield_parent, "await": await_task,
    "chain-1": chain_of_tasks, "as_completed": as_completed_parent,
}
if MINOR >= 9:
    KINDS["to_thread"] = to_thread
if MINOR >= 10:
    KINDS["anext"] = by_anext
if MINOR >= 11:
    KINDS.update({"group": group_parent, "timeout": timeout_parent, "barrier": barrier_wait})
if MODE == "python" and MINOR >= 14:  # asyncio.timeout() and TaskGroup do not take them for tasks there
    for kind in ("group", "timeout", "wait_for"):
        del KINDS[kind]


# --- what is true ---------------------------------------------------------------------------------


def awaited(thing):
    """What a suspended coroutine, or what stands between two, waits for."""
    for name in ("cr_await", "gi_yieldfrom", "ag_await"):
        if hasattr(thing, name):
            return getattr(thing, name)
    kinds = ("coroutine_wrapper", "async_generator_asend", "async_generator_athrow",
             "anext_awaitable", "FutureIter")
    if type(thing).__name__.split(".")[-1] in kinds:  # they do not tell, but the collector knows
        found = [x for x in gc.get_referents(thing)
                 if hasattr(x, "cr_await") or hasattr(x, "gi_yieldfrom") or hasattr(x, "ag_await")
                 or hasattr(x, "__await__") or type(x).__name__ in kinds or asyncio.isfuture(x)]
        return found[0] if found else None
    return None


def chain_of(thing):
    chain = []
    while thing is not None and not asyncio.isfuture(thing):
        frame = next((getattr(thing, name) for name in ("cr_frame", "gi_frame", "ag_frame")
                      if hasattr(thing, name)), None)
        if frame and not frame.f_code.co_filename.endswith(".pyx"):
            code = frame.f_code
            chain.append([getattr(code, "co_qualname", code.co_name), frame.f_lineno])
        thing = awaited(thing)
    return chain, type(thing).__name__ if thing is not None else None


def truth():
    found = {}
    # From 3.14 on all_tasks() leaves out those that Python implements.
    for t in asyncio.all_tasks(asyncio.get_event_loop()) | set(tasks.values()):
        name = t.get_name()
        chain, last = chain_of(t.get_coro())
        found[name] = {"chain": chain, "parents": parents.get(name, []), "for": last}
        if t in set(tasks.values()):
            assert tasks[name] is t, name
    return {"tasks": found}


def tell(facts):
    print(json.dumps(facts), flush=True)


def settle(loop, turns, then):
    """then(), as soon as nothing has happened in the loop for so many turns."""
    if turns:
        loop.call_soon(settle, loop, turns - 1, then)
    else:
        then()


# --- the modes ------------------------------------------------------------------------------------


async def everything(count):
    loop = asyncio.get_running_loop()
    box.update(future=loop.create_future(), lock=asyncio.Lock(),
               pool=concurrent.futures.ThreadPoolExecutor(1))
    await box["lock"].acquire()
    for name, make in KINDS.items():
        task(name, make())
    box["shared"] = task("shared", sleeper(), "sharer-1", "sharer-2")
    task("sharer-1", shared_parent())
    task("sharer-2", shared_parent())
    for i in range(count):
        task("sleeper-%d" % i, deep(4))
    unnamed = asyncio.ensure_future(sleeper())
    parents[unnamed.get_name()] = []
    settle(loop, 100, lambda: tell(truth()))
    await loop.create_future()


async def cycle():
    async def follow(i):
        await box[(i + 1) % 3]
    loop = asyncio.get_running_loop()
    for i in range(3):
        box[i] = task("cycle-%d" % i, follow(i), "cycle-%d" % ((i - 1) % 3))
    task("outside", shared_parent())
    box["shared"] = box[0]
    parents["cycle-0"].append("outside")
    settle(loop, 10, lambda: tell(truth()))
    await loop.create_future()


def hold():
    tell({"tasks": {}, "tid": threading.get_native_id()})
    never.wait()


async def blocked():
    async def inner():
        box["future"].set_result(None)
        task("new", sleeper())
        hold()

    async def blocker():
        await asyncio.sleep(0)
        await inner()
    box["future"] = asyncio.get_running_loop().create_future()
    task("ready", future_await())
    task("other", sleeper())
    await asyncio.sleep(0)
    task("blocker", blocker())
    await asyncio.sleep(3600)


def spin():
    while True:
        sum(range(100))


def compute():
    tell({"tasks": {}})
    spin()


async def computing():
    async def inner():
        await asyncio.sleep(0)
        compute()

    async def computer():
        await inner()
    task("other", sleeper())
    task("computer", computer())
    await asyncio.sleep(3600)


async def many(count):
    async def twenty(first):
        await asyncio.gather(*[task("leaf-%d" % (first + i), deep(2), "twenty-%d" % first)
                               for i in range(20)])
    for first in range(0, count, 20):
        task("twenty-%d" % first, twenty(first))
    settle(asyncio.get_running_loop(), 10, lambda: tell({"tasks": count + count // 20 + 1}))
    await asyncio.get_running_loop().create_future()


async def churn():
    async def low(n):
        await (low(n - 1) if n else asyncio.sleep(0))

    async def one():
        await low(3)

    async def two():
        await asyncio.gather(one(), low(5))
    tell({"tasks": {}})
    while True:
        await asyncio.gather(*[one() for _ in range(20)], *[two() for _ in range(20)])


async def anyio_groups():
    import anyio

    async def child(i):
        await anyio.sleep(3600)

    async def parent():
        async with anyio.create_task_group() as outer:
            parents["outer-child"] = ["anyio-parent"]
            outer.start_soon(child, 0, name="outer-child")
            async with anyio.create_task_group() as inner:
                for i in range(2):
                    parents["inner-%d" % i] = ["anyio-parent"]
                    inner.start_soon(child, i, name="inner-%d" % i)

    async def locked():
        async with box["lock"]:
            pass

    async def received():
        _, box["stream"] = ends = anyio.create_memory_object_stream(0)
        box["ends"] = ends
        await box["stream"].receive()
    box["lock"] = anyio.Lock()
    await box["lock"].acquire()
    for name, make in (("anyio-parent", parent), ("anyio-lock", locked), ("anyio-stream", received),
                       ("anyio-event", lambda: anyio.Event().wait()),
                       ("anyio-thread", lambda: anyio.to_thread.run_sync(never.wait))):
        task(name, make())
    settle(asyncio.get_running_loop(), 100, lambda: tell(truth()))
    await asyncio.get_running_loop().create_future()


def main():
    try:
        if MODE == "uvloop":
            import uvloop
            uvloop.install()
        elif MODE == "anyio":
            import anyio  # noqa: F401
    except ImportError as e:
        sys.exit(print("SKIP", e))
    print("READY", flush=True)
    sys.stdin.readline()
    threading.Thread(target=lambda: (sys.stdin.readline(), os._exit(0)), daemon=True).start()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    make = {"cycle": cycle, "blocked": blocked, "computing": computing, "many": lambda: many(count), "churn": churn,
            "anyio": anyio_groups}.get(MODE, lambda: everything(count))
    asyncio.run(make(), debug=MODE == "debug")


if __name__ == "__main__":
    main()
