# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Spins in spin_here(), one line, for argv[1] seconds (60). Says READY and its PID as it sees it."""
import os
import sys
import time


def spin_here(end):
    while time.perf_counter() < end: pass


def main():
    print("READY %d" % os.getpid())
    sys.stdout.flush()
    spin_here(time.perf_counter() + float(sys.argv[1] if len(sys.argv) > 1 else 60))


if __name__ == "__main__":
    main()
