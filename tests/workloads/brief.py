# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Lives briefly: spends 50 ms of CPU time in one function and says so: {"pid": PID, "ns": CPU time,
"slices": how often it was given a CPU}.

    brief.py python|clock

  python   the time is spent in the interpreter's own code, in in_python()
  clock    most of it in the vDSO and the kernel, in in_clock()
"""
import os
import sys
import time

thread_time = getattr(time, "thread_time", time.process_time)
SECONDS = 0.05


def in_python(end):
    while thread_time() < end: sum(range(2000))


def in_clock(end):
    while thread_time() < end: pass


def slices():
    try:
        with open("/proc/self/status") as f:
            return 1 + int(f.read().split("nonvoluntary_ctxt_switches:")[1].split()[0])
    except OSError:  # a root without /proc
        return 1


def main():
    function = {"python": in_python, "clock": in_clock}[sys.argv[1]]
    before = thread_time()
    function(before + SECONDS)
    spent = thread_time() - before
    os.write(1, b'{"pid": %d, "ns": %d, "slices": %d}\n' % (
        os.getpid(), round(spent * 1e9), slices()))


if __name__ == "__main__":
    main()
