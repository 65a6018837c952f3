# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tasks of asyncio whose work, and whose waits, are known.

    tasked.py work SECONDS [uvloop]   Truth: {label: CPU seconds}, by the thread's own clock
    tasked.py trio SECONDS            the same of trio's tasks, each in a function named like it
    tasked.py parked SECONDS N        all wait all the time. Truth: {place: number of tasks}
    tasked.py known SECONDS N         Truth: {place: seconds}, by the program's own clock
    tasked.py forked SECONDS N        N children, one after the other, each with a loop of its own, in which FORKED tasks
                                      sleep for SECONDS. Truth: {pid: seconds of all of them}
    tasked.py brief N                 one task after the other, each awaited, of 200 us. Truth: {"brief": CPU seconds}

A label is the name that a task was given, else that of its coroutine. A place is the functions of the
program from the root down, joined by blanks.
"""
import asyncio
import collections
import json
import os
import random
import sys
import threading
import time
import types

MODE, SECONDS = sys.argv[1], float(sys.argv[2])
if MODE == "trio":
    import trio
STEP = 0.002
FORKED = 10
TRUTH = collections.Counter()


def say(value):
    sys.stdout.write(value + "\n")
    sys.stdout.flush()


def awaited_go():
    """Without a task that waits for it: stdin is read by a thread."""
    loop, event = asyncio.get_event_loop(), asyncio.Event()

    def read():
        sys.stdin.readline()
        loop.call_soon_threadsafe(event.set)
    threading.Thread(target=read, daemon=True).start()
    return event


# --- work: shares of CPU time ---------------------------------------------------------------------

def spin(seconds):
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass
    return time.thread_time() - begin


def work(label, share):
    TRUTH[label] += spin(STEP * share)


async def innermost(label, share):
    work(label, share)
    await asyncio.sleep(0)
    work(label, share)


async def generated(label, share):
    await innermost(label, share)
    yield


async def nameless(label, share, go):
    await go.wait()
    while time.monotonic() < go.until:
        await innermost(label, share)


async def named(label, share, go):
    await go.wait()
    while time.monotonic() < go.until:
        async for _ in generated(label, share):
            await asyncio.sleep(0)


async def parent(go):
    """Several tasks wait by several means for those that work."""
    make = asyncio.ensure_future
    tasks = [make(nameless("nameless", 1, go))]
    for name, share in ("one", 2), ("zw\u00f6lf", 3), ("\u20ac" * 40, 1), ("x" * 70, 2), ("Task-A", 1):
        task = make(named(name, share, go))
        task.set_name(name)
        tasks.append(task)
    await asyncio.gather(tasks[0], asyncio.shield(tasks[1]), asyncio.gather(*tasks[2:]))


async def work_all():
    go, told = asyncio.Event(), awaited_go()
    task = asyncio.ensure_future(parent(go))
    await asyncio.sleep(0.01)
    say("READY")
    await told.wait()
    go.until = time.monotonic() + SECONDS
    go.set()
    await task
    cut = {name: name[:64 // (2 if max(name) > "\xff" else 1)] for name in TRUTH}
    say(json.dumps({cut[name] + ("\u2026" if cut[name] != name else ""): used for name, used in TRUTH.items()}))
    await awaited_go().wait()


# --- the same of trio -----------------------------------------------------------------------------

async def trio_innermost(label, share):
    work(label, share)
    await trio.sleep(0)


async def trio_one(label, share, go):
    await go.event.wait()
    while time.monotonic() < go.until:
        await trio_innermost(label, share)


async def trio_two(label, share, go):
    await go.event.wait()
    while time.monotonic() < go.until:
        await trio_innermost(label, share)
        await trio.sleep(STEP)


async def trio_parent(go):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio_one, "trio_one", 1, go, name="trio_one")
        nursery.start_soon(trio_two, "trio_two", 3, go, name="trio_two")
        nursery.start_soon(trio_one, "zw\u00f6lf", 2, go, name="zw\u00f6lf")
        nursery.start_soon(trio_two, "__main__.trio_two", 2, go)


async def trio_all():
    go = types.SimpleNamespace(event=trio.Event())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio_parent, go)
        await trio.sleep(0.01)
        say("READY")
        await trio.to_thread.run_sync(sys.stdin.readline)
        go.until = time.monotonic() + SECONDS
        go.event.set()
    say(json.dumps(TRUTH))
    await trio.to_thread.run_sync(sys.stdin.readline)


# --- parked and known: where tasks wait -----------------------------------------------------------

def park(seconds, at):
    """How a task waits `seconds` there (None: for ever)."""
    loop = asyncio.get_event_loop()
    if at == "sleep":
        return asyncio.sleep(1e6 if seconds is None else seconds)
    thing = {"event": asyncio.Event, "queue": asyncio.Queue, "future": loop.create_future}[at]()
    wake = {"event": getattr(thing, "set", None), "future": lambda: thing.set_result(None),
            "queue": lambda: thing.put_nowait(None)}[at]
    if seconds is not None:
        loop.call_later(seconds, wake)
    return {"event": lambda: thing.wait(), "queue": lambda: thing.get(), "future": lambda: thing}[at]()


async def in_sleep(seconds):
    await park(seconds, "sleep")


async def in_event(seconds):
    await park(seconds, "event")


async def in_queue(seconds):
    await park(seconds, "queue")


async def in_future(seconds):
    await park(seconds, "future")


SIMPLE = [in_sleep, in_event, in_queue, in_future]


async def child(seconds):
    """Notes its own wait: its parent waits longer, by the turns of the loop before and behind."""
    key = object()
    if MODE == "known":
        note(key, "worker gathers child in_sleep")
    await in_sleep(seconds)
    note(key)


async def gathers(seconds):
    await asyncio.gather(child(seconds), child(seconds))


WAITING = {}  # by worker or child: (place, since when)


def note(number, place=None):
    """What it waited for is over; it waits in that place now, or in none."""
    now = time.monotonic()
    before, since = WAITING.pop(number, (None, now))
    if before:
        TRUTH[before] += now - since
    if place:
        WAITING[number] = place, now


async def worker(number):
    chance = random.Random(number)
    functions = SIMPLE + [gathers]
    while True:
        function = chance.choice(functions)
        note(number, None if function is gathers else "worker " + function.__name__)
        await function(chance.uniform(0.5, 1.5))


async def park_all(number):
    functions, tasks = SIMPLE + [gathers], []  # a task that nobody keeps may be collected
    for i in range(number):
        function = functions[i % len(functions)]
        tasks.append(asyncio.ensure_future(worker_for_ever(function)))
        if function is gathers:
            TRUTH["worker_for_ever gathers child in_sleep"] += 2
        else:
            TRUTH["worker_for_ever " + function.__name__] += 1
    await asyncio.sleep(0.05)
    event = awaited_go()
    say("READY")
    await event.wait()
    await asyncio.sleep(SECONDS)
    say(json.dumps(TRUTH))
    await awaited_go().wait()


async def worker_for_ever(function):
    await function(None)


def note_all():
    for number, (place, _) in list(WAITING.items()):
        note(number, place)


async def brief():
    work("brief", 0.1)


async def brief_all():
    event = awaited_go()
    say("READY")
    await event.wait()
    for _ in range(int(SECONDS)):
        await asyncio.ensure_future(brief())
    say(json.dumps(TRUTH))
    await awaited_go().wait()


async def know_all(number):
    tasks = []
    for i in range(number):
        tasks.append(asyncio.ensure_future(worker(i)))
        await asyncio.sleep(0.2 / number)
    event = awaited_go()
    say("READY")
    await event.wait()
    note_all()
    TRUTH.clear()
    await asyncio.sleep(SECONDS)
    note_all()
    say(json.dumps(TRUTH))
    await awaited_go().wait()


async def sleep_all():
    await asyncio.gather(*[in_sleep(SECONDS) for _ in range(FORKED)])


def fork_all(number):
    asyncio.run(asyncio.sleep(0))
    say("READY")
    sys.stdin.readline()
    for _ in range(number):
        pid = os.fork()
        if not pid:
            asyncio.run(sleep_all())
            os._exit(0)
        os.waitpid(pid, 0)
        TRUTH[pid] = FORKED * SECONDS
    say(json.dumps(TRUTH))
    sys.stdin.readline()


def main():
    if MODE == "work":
        if "uvloop" in sys.argv:
            import uvloop
            asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        asyncio.run(work_all())
    elif MODE == "brief":
        asyncio.run(brief_all())
    elif MODE == "trio":
        trio.run(trio_all)
    elif MODE == "forked":
        fork_all(int(sys.argv[3]))
    else:
        asyncio.run({"parked": park_all, "known": know_all}[MODE](int(sys.argv[3])))


main()
