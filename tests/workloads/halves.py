# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Half of the CPU time in a(), then half in b(): in short lives, or in step with a timer.

    halves.py CASE COUNT MILLISECONDS

  forks    COUNT children, one after the other; each spends MILLISECONDS in a(), then in b()
  threads  the same with threads
  execs    the same with children that execute this program anew
  loop     COUNT turns of 2 x MILLISECONDS by the clock: a() in the first half of each, b() in the other

READY, GO, the truth, EXIT. With a fourth argument it begins at once and says the truth only.
Truth: {"cpu": {"a": CPU seconds, "b": ...}, "pids": who spent them}, each measured by the thread that
spent it.
"""
import json
import os
import subprocess
import sys
import threading
import time

clock = time.perf_counter
thread_cpu = getattr(  # 3.6 has no thread_time()
    time, "thread_time", None) or (lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))
CPU = {"a": 0.0, "b": 0.0}
PIDS = []


def a(now, end):
    while now() < end: pass


def b(now, end):
    while now() < end: pass


def spend(milliseconds):
    """Both halves by the thread's own CPU time."""
    start = thread_cpu()
    a(thread_cpu, start + milliseconds / 1000)
    middle = thread_cpu()
    b(thread_cpu, middle + milliseconds / 1000)
    CPU["a"] += middle - start
    CPU["b"] += thread_cpu() - middle
    PIDS.append(os.getpid())


def forks(count, milliseconds):
    for _ in range(count):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            CPU.update(a=0.0, b=0.0)
            PIDS.clear()
            spend(milliseconds)
            os.write(writing, json.dumps(truth()).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as f:
            add(json.load(f))
        os.waitpid(pid, 0)


def threads(count, milliseconds):
    for _ in range(count):
        t = threading.Thread(target=spend, args=(milliseconds,))
        t.start()
        t.join()


def execs(count, milliseconds):
    command = [sys.executable, "-S", "-E", sys.argv[0], "once", "1", str(milliseconds), "now"]
    for _ in range(count):
        add(json.loads(subprocess.check_output(command).decode()))


def once(_, milliseconds):
    spend(milliseconds)


def loop(count, milliseconds):
    half = milliseconds / 1000
    PIDS.append(os.getpid())
    edge = clock()
    for _ in range(count):
        start = thread_cpu()
        a(clock, edge + half)
        middle = thread_cpu()
        b(clock, edge + 2 * half)
        CPU["a"] += middle - start
        CPU["b"] += thread_cpu() - middle
        edge += 2 * half


def truth():
    return {"cpu": CPU, "pids": sorted(set(PIDS))}


def add(other):
    for name in CPU:
        CPU[name] += other["cpu"][name]
    PIDS.extend(other["pids"])


def main():
    case, count, milliseconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    is_now = len(sys.argv) > 4
    if not is_now:
        sys.stdout.write("READY\n")
        sys.stdout.flush()
        sys.stdin.readline()
    globals()[case](count, milliseconds)
    sys.stdout.write(json.dumps(truth()) + "\n")
    sys.stdout.flush()
    if not is_now:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
