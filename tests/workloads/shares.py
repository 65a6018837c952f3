# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A 75/25 split between heavy() and light().

    shares.py SECONDS random|lockstep

random: slices of exponential length, mean 3 ms and 1 ms; lockstep: a 10 ms period, 7.5 ms heavy,
then 2.5 ms light (a sampler in step with it would see a wrong split). Truth, CPU seconds
accumulated here: {"cpu", "heavy", "light"}.
"""
import json
import random
import sys
import time

clock = time.perf_counter
thread_cpu = getattr(  # 3.6 has no thread_time()
    time, "thread_time", None) or (lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))


def heavy(until):
    while clock() < until: pass


def light(until):
    while clock() < until: pass


def main(seconds, is_random):
    chance = random.Random(7)
    spent = {"heavy": 0.0, "light": 0.0}
    start = clock()
    period = 0
    while clock() < start + seconds:
        period += 1
        until = clock() + chance.expovariate(1 / 0.003) if is_random else start + period * 0.010 - 0.0025
        before = thread_cpu()
        heavy(until)
        between = thread_cpu()
        light(clock() + chance.expovariate(1 / 0.001) if is_random else start + period * 0.010)
        spent["heavy"] += between - before
        spent["light"] += thread_cpu() - between
    return spent


sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
start = time.process_time()
truth = main(float(sys.argv[1]), sys.argv[2] == "random")
truth["cpu"] = time.process_time() - start
sys.stdout.write(json.dumps(truth) + "\n")
sys.stdout.flush()
sys.stdin.readline()
