# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For other profilers: threads, recursion, exceptions, the garbage collector, idle time."""
import gc
import sys
import threading
import time


def leaf(count):
    return sum(number * number for number in range(count))


def down(depth):
    return leaf(2000) if depth == 0 else down(depth - 1) + 1


def handle(count):
    try:
        raise ValueError
    except ValueError:
        return leaf(count)


def collect():
    rings = []
    for _ in range(3000):
        ring = []
        ring.append(ring)
        rings.append(ring)
    del rings
    gc.collect()


def work(end):
    while time.monotonic() < end:
        leaf(1000)
        time.sleep(0.0005)


def main(seconds):
    sys.setrecursionlimit(2000)
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=work, args=(end,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        leaf(1000)
        handle(20000)
        collect()
        down(300)
        time.sleep(0.001)
    for thread in threads:
        thread.join()


main(float(sys.argv[1]))
