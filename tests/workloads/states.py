# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a thread does besides its frames: handlers, the collector, C functions; the GIL, by thread.

    states.py SECONDS phases|threads

phases: turns of each function of PHASES, about SECONDS of CPU time in all.
threads: holder() and keeper() take turns with the GIL for SECONDS, releaser() hashes without it.
Truth: {function: CPU seconds}, each by the thread's own clock.
"""
import functools
import gc
import hashlib
import json
import sys
import threading
import time
import zlib

clock = getattr(  # 3.6 has no thread_time()
    time, "thread_time", None) or (lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))
WORDS = [str(i * 7919 % 100003) for i in range(20000)]
BUFFER = bytes(bytearray(range(256))) * (8 << 10)


class Node:
    pass


def garbage(count):
    for _ in range(count):
        a, b = Node(), Node()
        a.other, b.other = b, a
        yield a


KEPT = list(garbage(20000))


def spin(turns):
    x = 0
    for i in range(turns):
        x += i * i
    return x


def deeper(turns, depth):
    return deeper(turns, depth - 1) if depth else spin(turns)


def suspended():
    try:
        raise ValueError
    except ValueError:
        while True:
            yield


SUSPENDED = suspended()


def plain(turns):
    spin(turns)


def handler(turns):
    try:
        raise KeyError
    except KeyError:
        spin(turns)


def below_handler(turns):
    try:
        raise KeyError
    except KeyError:
        deeper(turns, 20)


def exceptional_finally(turns):
    try:
        try:
            raise KeyError
        finally:
            spin(turns)
    except KeyError:
        pass


def plain_finally(turns):
    try:
        pass
    finally:
        spin(turns)


def beside_suspended_handler(turns):
    next(SUSPENDED)
    spin(turns)


def generator_in_handler(turns):
    def generator():
        try:
            raise ValueError
        except ValueError:
            spin(turns)
            yield
    for _ in generator():
        pass


def generator_below_handler(turns):
    def generator():
        spin(turns)
        yield
    try:
        raise ValueError
    except ValueError:
        for _ in generator():
            pass


def collect(_):
    gc.collect()


def sort(_):
    sorted(WORDS)


def checksum(_):
    zlib.crc32(BUFFER)


def key(word):
    for _ in "several":  # so that samples meet it
        pass
    return word


def sort_by_key(_):
    sorted(WORDS, key=key)


def nothing(a, b=1):
    return a


def call_python(turns):
    for i in range(turns // 4):
        nothing(i)
        nothing(i, 2)


PHASES = [plain, handler, below_handler, exceptional_finally, plain_finally, beside_suspended_handler,
          generator_in_handler, generator_below_handler, collect, sort, checksum, sort_by_key,
          call_python]
SPENT = {}


def spend(function, turns):
    start = clock()
    function(turns)
    SPENT[function.__name__] = SPENT.get(function.__name__, 0.0) + clock() - start


def phases(seconds):
    gc.disable()  # but in collect()
    end = clock() + seconds
    while clock() < end:
        for function in PHASES:
            spend(function, 60000)


def holder(end):
    while time.perf_counter() < end:
        spin(20000)


def keeper(end):
    while time.perf_counter() < end:
        sorted(WORDS)


def releaser(end):
    while time.perf_counter() < end:
        hashlib.sha256(BUFFER)


def threads(seconds):
    end = time.perf_counter() + seconds
    workers = [threading.Thread(target=functools.partial(spend, function, end))
               for function in (holder, keeper, releaser)]
    for t in workers:
        t.start()
    for t in workers:
        t.join()


def main():
    print("READY")
    sys.stdout.flush()
    sys.stdin.readline()
    {"phases": phases, "threads": threads}[sys.argv[2]](float(sys.argv[1]))
    print(json.dumps(SPENT))
    sys.stdout.flush()
    sys.stdin.readline()


main()
