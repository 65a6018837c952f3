# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""meter.py SECONDS FD: 50 frames deep, units of work of about 0.5 ms; says how long each took.

Writes [[wall clock, CPU clock of the thread] after each unit, in seconds] to FD, a file: writes to
a full pipe were cut short under a profiler that stops the process in them. Truth: {}.
"""
import json
import sys
import time

DEPTH = 50
LEAF = """
def leaf(end):
    marks = [(clock(), cpu())]
    while marks[-1][0] < end:
        x = 1
        for _ in range(4000):
            x = (x * 1103515245 + 12345) & 0x7fffffff
        marks.append((clock(), cpu()))
    return marks
"""

source = "".join("def a%d(end):\n    return a%d(end)\n" % (i, i + 1) for i in range(DEPTH - 1))
namespace = {"clock": time.perf_counter, "cpu": time.thread_time}
exec(compile(source + LEAF.replace("leaf", "a%d" % (DEPTH - 1)), "meter.py", "exec"), namespace)
sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
marks = namespace["a0"](time.perf_counter() + float(sys.argv[1]))
with open(int(sys.argv[2]), "w") as f:
    json.dump(marks, f)
sys.stdout.write("{}\n")
sys.stdout.flush()
sys.stdin.readline()
