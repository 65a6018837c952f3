# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""shape.py SECONDS steady|mixed|churning [DEPTH]: stacks of a given kind, all day on the CPU.

steady    DEPTH (50) different functions deep, a loop over 12 lines of the innermost one
mixed     a fixed call graph of 400 functions with four call sites each, a random walk through it,
          up to 11-31 deep, 10-20 us in each function
churning  tree recursion 12-40 deep: nearly every sample is a new stack
Truth: {"cpu": seconds of the process}.
"""
import json
import random
import sys
import time

clock = time.perf_counter


def define(source, name):
    namespace = {"clock": clock, "rnd": random.Random(7).random}
    exec(compile(source, name, "exec"), namespace)
    return namespace


def steady(last, depth=50):
    source = "".join("def a%d(last):\n    a%d(last)\n" % (i, i + 1) for i in range(depth - 1))
    source += "def a%d(last):\n    x = 1\n    while clock() < last:\n" % (depth - 1)
    source += "        for _ in range(200):\n"
    source += "            x = (x * 1103515245 + 12345) & 0x7fffffff\n" * 10
    define(source, "steady.py")["a0"](last)


def mixed(last):
    pick = random.Random(7)
    source = ""
    for i in range(400):
        source += "def f%d(depth):\n    x = 1\n" % i
        source += "    for _ in range(100):\n        x = (x * 1103515245 + 12345) & 0x7fffffff\n"
        source += "    if not depth:\n        return x\n    k = rnd()\n"
        for limit in (0.25, 0.5, 0.75, 1.0):
            source += "    if k < %g:\n        return f%d(depth - 1) + x\n" % (
                limit, pick.randrange(400))
    source += "def main(last):\n    while clock() < last:\n        f0(10 + int(rnd() * 21))\n"
    define(source, "mixed.py")["main"](last)


def churning(last):
    source = """
def grow(depth, last):
    x = 1
    for _ in range(30):
        x = (x * 1103515245 + 12345) & 0x7fffffff
    if depth < 12 or depth < 40 and rnd() < 0.55:
        if clock() < last:
            x += left(depth + 1, last)
        x += right(depth + 1, last)
    return x
def left(depth, last):
    return grow(depth, last)
def right(depth, last):
    if clock() > last:
        return 0
    return grow(depth, last)
def main(last):
    while clock() < last:
        grow(0, last)
"""
    define(source, "churning.py")["main"](last)


run = {"steady": steady, "mixed": mixed, "churning": churning}[sys.argv[2]]
sys.setrecursionlimit(5000)
sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
start = time.process_time()
run(clock() + float(sys.argv[1]), *map(int, sys.argv[3:]))
sys.stdout.write(json.dumps({"cpu": time.process_time() - start}) + "\n")
sys.stdout.flush()
sys.stdin.readline()
