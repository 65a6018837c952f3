# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A thread computes in deep(), DEPTH calls down, and in flat(), in turn, for 30 ms of CPU time each, SECONDS in all.

Truth, at the end: {"deep": seconds of CPU time, "flat": seconds}.
"""
import json
import sys
import threading
import time

TURN = 0.03
STACK_BYTES = 512 << 20  # for the C stack of up to 3.10
spent = {"deep": 0.0, "flat": 0.0}


def compute(name, begin):
    while time.thread_time() - begin < TURN:
        pass
    spent[name] += time.thread_time() - begin


def flat():
    compute("flat", time.thread_time())


def deep(calls):
    if calls:
        return deep(calls - 1)
    return compute("deep", time.thread_time())


def work(depth, seconds):
    while time.thread_time() < seconds:
        deep(depth)
        flat()


def main(depth, seconds):
    sys.setrecursionlimit(depth + 1000)
    threading.stack_size(STACK_BYTES)
    print("READY", flush=True)
    sys.stdin.readline()
    thread = threading.Thread(target=work, args=(depth, seconds))
    thread.start()
    thread.join()
    print(json.dumps(spent), flush=True)
    sys.stdin.readline()


main(int(sys.argv[1]), float(sys.argv[2]))
