# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""spin.py [SECONDS (60) [always]]: spins in one line of spin_here(), else a quarter of its time. Says READY and its PID."""
import os
import sys
import time


def spin_here(end, rest=0):
    while time.perf_counter() < end and not (rest and sum(range(100000)) and time.sleep(rest)): pass


def main():
    print("READY %d" % os.getpid())
    sys.stdout.flush()
    end = time.perf_counter() + float(sys.argv[1] if len(sys.argv) > 1 else 60)
    spin_here(end, 0 if len(sys.argv) > 2 else 0.006)


if __name__ == "__main__":
    main()
