# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The line it is at tells the time: line N + 2 is the N-th 2 ms since a moment told to it.

    moments.py MILLISECONDS     3,000 at most: line tables beyond 64 KiB come later than samples

The moment, in seconds of CLOCK_MONOTONIC, is the line read on stdin after READY; an empty one or
GO is "now". So the least line of moments() in a recording is when its first sample was taken.
Truth: {"cpu", "began": milliseconds after the moment at which it began to spin}.
"""
import json
import sys
import time

monotonic = time.monotonic


def make(milliseconds):
    source = "def moments(start):\n" + "".join(
        "    while monotonic() < start + %r: pass\n" % (2 * (i + 1) / 1000.0)
        for i in range(milliseconds // 2))
    namespace = {"monotonic": monotonic}
    exec(compile(source, "moments_lines.py", "exec"), namespace)
    return namespace["moments"]


moments = make(int(sys.argv[1]))
sys.stdout.write("READY\n")
sys.stdout.flush()
told = sys.stdin.readline().strip()
start = time.process_time()
moment = float(told) if told not in ("", "GO") else monotonic()
began = monotonic() - moment
moments(moment)
sys.stdout.write(json.dumps({"cpu": time.process_time() - start, "began": began * 1000}) + "\n")
sys.stdout.flush()
sys.stdin.readline()
