# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Forks at once. Both processes wait, call os.getppid() a known number of times, and say their PID."""
import os
import time

CALLS = 2000


def calls():
    for _ in range(CALLS):
        os.getppid()


child = os.fork()
time.sleep(0.3)
calls()
os.write(1, b"%d\n" % os.getpid())
if child:
    os.waitpid(child, 0)
