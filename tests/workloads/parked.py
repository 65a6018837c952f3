# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Greenlets that wait: plain ones in two threads, gevent's in a third.

    parked.py FOLDER [OBJECTS]

FOLDER holds greenlet and gevent. OBJECTS more objects are the collector's, some of them frozen. Truth:
{"tasks": [[tid, type, [[function, line]...]]...] sorted, "frameless": how many wait without a Python frame}. Some
greenlets have not begun, and some have ended: these do not wait.
"""
import gc
import json
import os
import sys
import threading

sys.path.insert(0, sys.argv[1])
import gevent  # noqa: E402
import greenlet  # noqa: E402

own_id = getattr(threading, "get_native_id", None) or (lambda: int(os.readlink("/proc/thread-self").split("/")[-1]))
tasks, kept = [], []
frameless = 0
is_ready = [threading.Event() for _ in range(3)]


def lines(*functions):
    """Returns the line after each function's def, where it waits."""
    return [[f.__name__, f.__code__.co_firstlineno + 1] for f in functions]


def leaf():
    return greenlet.getcurrent().parent.switch()


def low():
    return leaf()


def through_c():
    return sorted([1], key=lambda _: leaf())


def numbers():
    yield low()


def of_generator():
    return list(numbers())


def short():
    return 1


CHAINS = [[low, leaf], [leaf], [of_generator, numbers, low, leaf]]


def deep(n):
    return deep(n - 1) if n else leaf()


def park(place):
    """Makes a greenlet that waits in each way, one that has not begun and one that has ended."""
    for chain in CHAINS:
        made = greenlet.greenlet(chain[0])
        made.switch()
        kept.append(made)
        tasks.append([own_id(), "greenlet", lines(*chain)])
    made = greenlet.greenlet(through_c)
    made.switch()
    line = through_c.__code__.co_firstlineno + 1
    tasks.append([own_id(), "greenlet", [["through_c", line], ["<lambda>", line], *lines(leaf)]])
    kept.append(made)
    made = greenlet.greenlet(deep)
    made.switch(300)
    kept.append(made)
    tasks.append([own_id(), "greenlet", lines(deep) * 301 + lines(leaf)])
    kept.extend([greenlet.greenlet(low), greenlet.greenlet(short)])
    kept[-1].switch()
    is_ready[place].set()


def thread():
    park(1)
    threading.Event().wait()


def sleeper():
    gevent.sleep(3600)


def run_hub():
    global frameless
    spawned = [gevent.spawn(sleeper) for _ in range(3)]
    spawned.append(gevent.spawn(spawned[0].join))  # calls nothing of Python's
    gevent.sleep(0)
    tasks.extend([[own_id(), "Greenlet", lines(sleeper)]] * 3)
    frameless += 1
    kept.extend(spawned)
    gevent.get_hub().loop.timer(0).start(is_ready[2].set)
    gevent.joinall(spawned)


print("READY", flush=True)
sys.stdin.readline()
objects = [[i] for i in range(int(sys.argv[2]) if len(sys.argv) > 2 else 0)]
park(0)
if hasattr(gc, "freeze"):
    gc.freeze()
for work in (thread, run_hub):
    threading.Thread(target=work, daemon=True).start()
for event in is_ready:
    event.wait()
print(json.dumps({"tasks": sorted(tasks), "frameless": frameless}), flush=True)
sys.stdin.readline()
