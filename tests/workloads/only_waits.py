# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waits once, for the seconds of its argument, and says its PID: what it does else takes a few milliseconds."""
import os
import sys
import time


def only_wait(): time.sleep(float(sys.argv[1]))


only_wait()
os.write(1, b"%d\n" % os.getpid())
