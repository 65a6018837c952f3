# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Requests that have context variables, in tasks and in threads; each value's own CPU time.

    labelled.py SECONDS VARIABLES

VARIABLES: so many others are set beside, so that the tree has nodes of all kinds. Truth: {"route":
{value: CPU seconds}, "user": ...}, None: unset, each by the thread's own clock.
"""
import asyncio
import collections
import contextvars
import json
import sys
import threading
import time

SECONDS, VARIABLES = float(sys.argv[1]), int(sys.argv[2])
STEP = 0.004
LONG = "/" + "x" * 70

ROUTE = contextvars.ContextVar("route")
USER = contextvars.ContextVar("user", default=0)
OTHERS = [contextvars.ContextVar("other%d" % i) for i in range(VARIABLES)]
UNSET = object()


class Name(str):
    """A str whose characters are elsewhere."""


# (route, user, share of the time)
REQUESTS = [("/orders", 7, 5), ("/orders", -2 ** 70, 3), ("/\u20ac", True, 2), (Name("/named"), UNSET, 2),
            (LONG, 2 ** 40, 2), (UNSET, 1, 1), (None, 1, 1), (UNSET, UNSET, 1)]
TRUTH = {"route": collections.Counter(), "user": collections.Counter()}
LOCK = threading.Lock()


def value_of(value):
    if value is UNSET or value is None:
        return None
    if isinstance(value, str):
        return value[:64] + "\u2026" if len(value) > 64 else str(value)
    return "-0x%x" % -value if value < -2 ** 64 else str(value)


def spin(seconds):
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass
    return time.thread_time() - begin


def work(route, user, share):
    used = spin(STEP * share)
    with LOCK:
        TRUTH["route"][value_of(route)] += used
        TRUTH["user"][value_of(user)] += used


def set_all(route, user):
    for i, variable in enumerate(OTHERS):
        variable.set(i)
    if route is not UNSET:
        ROUTE.set(route)
    if user is not UNSET:
        USER.set(user)


async def request(route, user, share):
    set_all(route, user)
    for _ in range(2):
        work(route, user, share / 2)
        await asyncio.sleep(0)
    nested = contextvars.copy_context()
    nested.run(ROUTE.set, "/nested")
    nested.run(work, "/nested", user, 0.5)
    work(route, user, 0.5)


async def serve(end):
    while time.thread_time() < end:
        await asyncio.gather(*(asyncio.ensure_future(request(*r)) for r in REQUESTS))


def in_tasks():
    asyncio.new_event_loop().run_until_complete(serve(time.thread_time() + SECONDS / 2))


def in_thread(end):
    while time.thread_time() < end:
        for route, user, share in REQUESTS:
            contextvars.copy_context().run(lambda: (set_all(route, user), work(route, user, share)))


def main():
    print("READY", flush=True)
    sys.stdin.readline()
    thread = threading.Thread(target=lambda: in_thread(time.thread_time() + SECONDS / 2))
    thread.start()
    in_tasks()
    thread.join()
    print(json.dumps({label: [[value, used] for value, used in values.items()]
                      for label, values in TRUTH.items()}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
