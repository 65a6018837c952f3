# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Arithmetic in loops, which CPython's JIT compiles, also around calls from C into Python.

    hot.py SECONDS    of CPU time

What there is to compile has been when it says READY. Truth: {"cpu"}.
"""
import sys
import time


def plain(n):
    x = 0.0
    k = 0
    for i in range(n):
        x = x * 1.0001 + 1.0
        x = x - i * 0.5
        k = (k * 7 + i) & 1023
        if x > 1e9:
            x = 0.0
        k = k ^ 5
    return x + k


def key(value):
    t = 0
    for i in range(60):
        t = t + i * value
        t = t & 65535
    return t


def calling(n):
    t = 0
    for i in range(n):
        max((1,), key=key)
        t = t * 3 + i
        t = t & 65535
        t = t * 3 + i
        t = t & 65535
        t = t * 3 + i
        t = t & 65535
        t = t * 3 + i
        t = t & 65535
    return t


plain(100000)
calling(5000)
sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
start = time.process_time()
while time.process_time() < start + float(sys.argv[1]):
    plain(100000)
    calling(5000)
sys.stdout.write('{"cpu": %r}\n' % (time.process_time() - start))
sys.stdout.flush()
sys.stdin.readline()
