# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Does much of one thing for ever: storms.py forks|execs|threads|short-threads [COUNT]. READY, PID."""
import os
import sys
import threading
import time


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def forks(is_exec):
    while True:
        pid = os.fork()
        if pid == 0:
            if is_exec:
                os.execv(sys.executable, [sys.executable, "-S", "-c", "sum(range(20000))"])
            spin(0.002)
            os._exit(0)
        os.waitpid(pid, 0)


def threads(count):
    """All there at once; each computes from time to time."""
    threading.stack_size(64 << 10)
    go = threading.Event()

    def run(number):
        go.wait()
        time.sleep(0.002 * number)
        while True:
            spin(0.0002)
            time.sleep(0.002 * count)
    for number in range(count):
        threading.Thread(target=run, args=(number,), daemon=True).start()
    go.set()


def short_threads():
    while True:
        thread = threading.Thread(target=spin, args=(0.001,))
        thread.start()
        thread.join()


def main():
    what, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if what == "threads":
        threads(count)
    print("READY %d" % os.getpid())
    sys.stdout.flush()
    if what in ("forks", "execs"):
        forks(what == "execs")
    elif what == "short-threads":
        short_threads()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
