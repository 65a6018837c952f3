# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""slots.py SECONDS: the function that runs tells the time: slot_0 in the first millisecond, ...

The earliest slot in a profile is when its first sample was taken, whatever tool took it.
Says READY START on the clock of time.monotonic(), and runs at once. No truth.
"""
import sys
import time

clock = time.monotonic

count = int(float(sys.argv[1]) * 1000)
source = "".join("def slot_%d(end):\n    while clock() < end: pass\n" % i for i in range(count))
namespace = {"clock": clock}
exec(compile(source, "slots.py", "exec"), namespace)
slots = [namespace["slot_%d" % i] for i in range(count)]
start = clock()
sys.stdout.write("READY %r\n" % start)
sys.stdout.flush()
for i, slot in enumerate(slots):
    slot(start + (i + 1) / 1000)
