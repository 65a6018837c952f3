# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Spends 150 ms, so that the process is known; then goes once through 50 functions, each a code
object of its own, and spends 25 ms at their end."""
import time

thread_time = getattr(time, "thread_time", time.process_time)
DEPTH = 50
SOURCE = "".join("def deep_%d(): deep_%d()\n" % (i, i + 1) for i in range(DEPTH - 1))
SPIN = "def deep_%d():\n while thread_time() < end: pass\n" % (DEPTH - 1)

exec(SOURCE + SPIN)
end = thread_time() + 0.15
while thread_time() < end: pass
end = thread_time() + 0.025
deep_0()  # noqa: F821
