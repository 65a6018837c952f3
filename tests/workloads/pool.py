# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pool.py METHOD COUNT: children by multiprocessing that spin in spin.py's spin_here().

Says READY and its PID when all of them are there."""
import multiprocessing
import os
import sys
import time

import spin


def child(queue):
    queue.put(os.getpid())
    spin.spin_here(time.perf_counter() + 60)


def main():
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.SimpleQueue()
    for _ in range(int(sys.argv[2])):
        context.Process(target=child, args=(queue,), daemon=True).start()
    for _ in range(int(sys.argv[2])):
        queue.get()
    print("READY %d" % os.getpid())
    sys.stdout.flush()
    time.sleep(60)


if __name__ == "__main__":
    main()
