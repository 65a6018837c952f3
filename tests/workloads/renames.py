# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""renames.py: the main thread and one more each have another kernel name at each turn, as servers tell
what they do, and run a function of that name meanwhile. READY, GO, then "{}", EXIT."""
import sys
import threading
import time

TURNS = 6
SECONDS = 0.1


def spin():
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end: pass


def idle(): spin()
def busy(): spin()


def alternate(turns):
    for _ in range(turns):
        for function in (idle, busy):
            with open("/proc/thread-self/comm", "w") as f:
                f.write("w: " + function.__name__)
            function()


def main():
    other = threading.Thread(target=alternate, args=(TURNS,), name="the other")
    other.start()
    alternate(TURNS)
    other.join()


if __name__ == "__main__":
    print("READY")
    sys.stdout.flush()
    sys.stdin.readline()
    main()
    print("{}")
    sys.stdout.flush()
    sys.stdin.readline()
