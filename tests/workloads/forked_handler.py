# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A child after fork() handles an exception for 0.2 s of CPU time, then computes for 0.2 s without one.

    forked_handler.py both|child

both: the parent has done the same before it forks. child: it has done nothing.
"""
import os
import sys
import time

clock = getattr(time, "thread_time", time.process_time)
SECONDS = 0.2


def handles():
    end = clock() + SECONDS
    try:
        raise ValueError
    except ValueError:
        while clock() < end: pass


def computes():
    assert sys.exc_info() == (None, None, None)
    end = clock() + SECONDS
    while clock() < end: sum(range(1000))


if sys.argv[1] == "both":
    handles()
    computes()
if os.fork() == 0:
    handles()
    computes()
    os._exit(0)
os.wait()
