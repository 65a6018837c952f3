# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tasks of trio that wait, in nurseries, and that stay so.

    nurseries.py rest       every kind of wait that there is a name for
    nurseries.py blocked    one task blocks its loop

Truth: as awaits.py: {"tasks": {name: {"chain": [[function, line]...], "parents": [name...]}}}, of all tasks of
the run, those of trio's own among them.
"""
import json
import os
import sys
import threading

never = threading.Event()
box = {}


async def sleeper():
    await box["trio"].sleep(3600)


async def nested():
    async with box["trio"].open_nursery() as nursery:
        nursery.start_soon(sleeper, name="inner-0")
        nursery.start_soon(sleeper, name="inner-1")


async def lock_acquire():
    async with box["lock"]:
        pass


async def event_wait():
    await box["trio"].Event().wait()


async def receive():
    async with box["receive"]:
        await box["receive"].receive()


async def in_thread():
    await box["trio"].to_thread.run_sync(never.wait)


async def with_timeout():
    with box["trio"].move_on_after(3600):
        async with box["trio"].open_nursery() as nursery:
            nursery.start_soon(sleeper, name="of-timeout")
            await sleeper()


def chain_of(thing):
    chain = []
    while thing is not None:
        frame = next((getattr(thing, name) for name in ("cr_frame", "gi_frame", "ag_frame")
                      if hasattr(thing, name)), None)
        if frame:
            code = frame.f_code
            chain.append([getattr(code, "co_qualname", code.co_name), frame.f_lineno])
        thing = next((getattr(thing, name) for name in ("cr_await", "gi_yieldfrom", "ag_await")
                      if hasattr(thing, name)), None)
    return chain


def all_tasks(task):
    yield task
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            yield from all_tasks(child)


def tell(facts):
    print(json.dumps(facts), flush=True)


def truth():
    found = {}
    for t in all_tasks(box["trio"].lowlevel.current_root_task()):
        of = t.parent_nursery
        found[t.name] = {"chain": chain_of(t.coro), "parents": [of.parent_task.name] if of else []}
    tell({"tasks": found})


class WhenIdle:
    """An instrument of trio's: tells the truth just before the loop waits for the world."""

    def before_io_wait(self, timeout):
        if timeout > 1 and not box.get("told"):
            box["told"] = True
            truth()


def hold():
    tell({"tasks": {}})
    never.wait()


async def blocked():
    async def blocker():
        hold()
    async with box["trio"].open_nursery() as nursery:
        nursery.start_soon(sleeper, name="other")
        await box["trio"].sleep(0)
        nursery.start_soon(blocker, name="blocker")


async def rest():
    trio = box["trio"]
    box["lock"] = trio.Lock()
    await box["lock"].acquire()
    box["send"], box["receive"] = trio.open_memory_channel(0)
    async with trio.open_nursery() as nursery:
        for name, function in (("sleep", sleeper), ("nested", nested), ("lock", lock_acquire),
                               ("event", event_wait), ("receive", receive),
                               ("thread", in_thread), ("timeout", with_timeout)):
            nursery.start_soon(function, name=name)
        trio.lowlevel.add_instrument(WhenIdle())


def main():
    try:
        import trio
    except ImportError as e:
        sys.exit(print("SKIP", e))
    box["trio"] = trio
    print("READY", flush=True)
    sys.stdin.readline()
    threading.Thread(target=lambda: (sys.stdin.readline(), os._exit(0)), daemon=True).start()
    trio.run(blocked if sys.argv[1] == "blocked" else rest)


if __name__ == "__main__":
    main()
