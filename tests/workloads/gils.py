# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads of three interpreters compute, each for SECONDS of CPU time, the functions spins_main, spins_shared (of an
interpreter that shares the main one's GIL) and, in two threads, spins_own (from CPython 3.12 on with a GIL of its own).
Each thread holds the GIL while they add up NUMBERS (100,000: 2 ms) numbers.

Truth, as all begin to compute: [{function: [tid]} of those that share a GIL]; at the end: null.
"""
import json
import os
import sys
import threading

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

CODE = """
import os, threading, time
def starts():
    os.write(%(to)d, b"%(name)s %%d\\n" %% threading.get_native_id())
    os.read(%(go)d, 1)
    spins_%(name)s()
def spins_%(name)s():
    while time.thread_time() < %(seconds)r:
        sum(range(%(numbers)d))
        time.sleep(0.001)  # 3.12 asks only threads of the same interpreter to let go of the GIL
others = [threading.Thread(target=starts) for _ in range(%(others)d)]
for thread in others: thread.start()
starts()
for thread in others: thread.join()
"""
HAS_OWN = sys.version_info >= (3, 12)


def create(is_own):
    if is_own and HAS_OWN:
        return interpreters.create()
    if sys.version_info >= (3, 13):
        return interpreters.create("legacy")
    if sys.version_info >= (3, 9):
        return interpreters.create(isolated=False)
    return interpreters.create()


def run(is_own, code):
    """Up to 3.9 only the thread that made an interpreter is known to run in it."""
    failed = (getattr(interpreters, "exec", None) or interpreters.run_string)(create(is_own), code)
    assert not failed, failed


def main(seconds, numbers=100000):
    print("READY", flush=True)
    sys.stdin.readline()
    (out, to), (go, start) = os.pipe(), os.pipe()

    def code(name, others=0):
        return CODE % {"name": name, "to": to, "go": go, "seconds": seconds, "others": others,
                       "numbers": numbers}
    threads = [threading.Thread(target=exec, args=(code("main"), {})),
               threading.Thread(target=run, args=(False, code("shared"))),
               threading.Thread(target=run, args=(True, code("own", 1)))]
    for thread in threads:
        thread.start()
    tids = {"spins_main": [], "spins_shared": [], "spins_own": []}
    with open(out) as lines:
        for _ in range(4):
            name, tid = lines.readline().split()
            tids["spins_" + name].append(int(tid))
    gils = [tids, {"spins_own": tids.pop("spins_own")}] if HAS_OWN else [tids]
    os.write(start, b"GO" * 2)
    print(json.dumps(gils), flush=True)
    for thread in threads:
        thread.join()
    print("null", flush=True)
    sys.stdin.readline()


main(float(sys.argv[1]), *map(int, sys.argv[2:]))
