# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Thousands of functions made by exec, run once, freed, and made again at the same addresses.

    churn.py SECONDS lines|names|same COUNT

All have the same file name, the same shape and the same first line, and are made until one lies
exactly where another one that ran has lain (at most TRIES times each). The frame of dispatch() above
them tells which one runs: its line is the one of call number K (0..99).
lines  named f_KK, spins at line 2 + K: name and line differ, their lengths do not
names  named f_KK, spins at line 2: only the name differs
same   named f, spins at line 2 + K % 30: only the line table differs, and not in its length
Truth: {"cpu", "made", "reused": functions that had all of code object, name, file name and line
table where an earlier, different one had them, "first": line of call 0 in dispatch.py}.
"""
import json
import sys
import time

clock = time.perf_counter
CALLS = 100
TRIES = 30


def make(kind, k):
    name = "f" if kind == "same" else "f_%02d" % k
    blank = {"lines": k, "names": 0, "same": k % 30}[kind]
    source = "def %s(end):\n%s    while clock() < end: pass\n" % (name, "\n" * blank)
    namespace = {"clock": clock}
    exec(compile(source, "churn.py", "exec"), namespace)
    return namespace[name]


def where(code):
    table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    return id(code), id(code.co_name), id(code.co_filename), id(table)


def make_dispatch():
    """dispatch(k, f, end) calls f(end) at line 2 k + 3."""
    source = "def dispatch(k, f, end):\n" + "".join(
        "    if k == %d:\n        f(end)\n" % k for k in range(CALLS))
    namespace = {}
    exec(compile(source, "dispatch.py", "exec"), namespace)
    return namespace["dispatch"]


def main(seconds, kind, count):
    dispatch = make_dispatch()
    seen = {}
    reused = 0
    for i in range(count):
        k = i * 37 % CALLS
        for _ in range(TRIES):
            f = None
            f = make(kind, k)
            place = where(f.__code__)
            if seen.get(place, k) != k:
                reused += 1
                break
        seen[place] = k
        dispatch(k, f, clock() + seconds / count)
        del f
    return reused


sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
start = time.process_time()
count = int(sys.argv[3])
reused = main(float(sys.argv[1]), sys.argv[2], count)
sys.stdout.write(json.dumps({"cpu": time.process_time() - start, "made": count,
                             "reused": reused, "first": 3}) + "\n")
sys.stdout.flush()
sys.stdin.readline()
