#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `pyebpf dump --async` takes to read and print a program's tasks, by interpreter.

    tasks.py [TASKS]     10,000, gathered by twenties, each below five coroutines

The least of some runs: CPU time of the whole program, in ms, and how much of it is not the same for
a process without tasks. Nothing is asserted: it prints.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
for folder in ("tools", "integration"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))
import harness  # noqa: E402
import pythons  # noqa: E402

ROUNDS = 7
FIRST_MINOR = 8


def cpu_ms(pid):
    """Of one run: user and system time."""
    child = subprocess.Popen([harness.PYEBPF, "dump", "--async", "-p", str(pid)],
                             stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    assert status == 0
    return (usage.ru_utime + usage.ru_stime) * 1e3


def least(python, count):
    with harness.Workload(python, "awaits.py", "many", count) as work:
        work.go()
        work.truth()
        return min(cpu_ms(work.pid) for _ in range(ROUNDS))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    print("%-26s %12s %12s" % ("%d tasks" % count, "in all", "of tasks"))
    for python in pythons.find_all():
        if python.minor < FIRST_MINOR or python.free_threaded or python.debug:
            continue
        whole, base = least(python, count), least(python, 20)
        print("%-26s %9.1f ms %9.1f ms" % (python.name, whole, whole - base), flush=True)


if __name__ == "__main__":
    main()
