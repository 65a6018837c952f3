# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPU time in C code that has released the GIL, and a sleeper beside a busy thread.

    gilfree.py SECONDS hashlib|zlib|sleep

hashlib, zlib: four threads call them on 4 MiB buffers, at one line of in_c().
sleep: busy() spins while sleeper() sleeps 0.2 ms at a time; neither may get the other's samples.
Truth: {"cpu", "threads": {function: CPU seconds}, "leaf": [[qualname, line]...]: where the leaf
may be while at work}.
"""
import hashlib
import json
import sys
import threading
import time
import zlib

clock = time.perf_counter
thread_cpu = getattr(  # 3.6 has no thread_time()
    time, "thread_time", None) or (lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))
BUFFER = bytes(bytearray(range(256))) * (4 << 12)


def in_c(call, end):
    while clock() < end: call(BUFFER)


def busy(_, end):
    while clock() < end: pass


def sleeper(_, end):
    while clock() < end: time.sleep(0.0002)


def worker(function, call, end, spent):
    before = thread_cpu()
    function(call, end)
    spent.append((function.__name__, thread_cpu() - before))


def main(seconds, kind):
    end = clock() + seconds
    call = {"hashlib": hashlib.sha256, "zlib": zlib.compress, "sleep": None}[kind]
    functions = [busy, sleeper] if kind == "sleep" else [in_c] * 4
    spent = []
    threads = [threading.Thread(target=worker, args=(f, call, end, spent)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    totals = {}
    for name, seconds in spent:
        totals[name] = totals.get(name, 0.0) + seconds
    return totals, sorted(set((f.__name__, f.__code__.co_firstlineno + 1) for f in functions))


sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
start = time.process_time()
totals, leaf = main(float(sys.argv[1]), sys.argv[2])
sys.stdout.write(json.dumps({"cpu": time.process_time() - start, "threads": totals,
                             "leaf": leaf}) + "\n")
sys.stdout.flush()
sys.stdin.readline()
