# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Itself and two forked children, one of which may execute this program anew ("executes"); each with the
main thread, one that computes, one that waits, and one that takes another name halfway. They compute for a
twentieth of their time. Says READY, goes on at a line, says as JSON how many there were, and ends at the next."""
import json
import os
import sys
import threading
import time

SECONDS = float(sys.argv[1])
CHILDREN = 2
THREADS = 4  # of each process


def rename(name):
    """Python's name and the kernel's: 3.14 sets both by itself."""
    threading.current_thread().name = name
    with open("/proc/thread-self/comm", "w") as f:
        f.write(name)


def compute(end):
    while time.perf_counter() < end:
        pause = time.perf_counter() + 0.002
        while time.perf_counter() < pause:
            pass
        time.sleep(0.04)


def wait(end):
    while time.perf_counter() < end:
        time.sleep(0.01)


def change(end):
    half = time.perf_counter() + (end - time.perf_counter()) / 2
    rename("first")
    compute(half)
    rename("second")
    compute(end)


def live(end):
    threads = [threading.Thread(target=f, args=(end,), name=f.__name__) for f in (compute, wait, change)]
    for thread in threads:
        thread.start()
    compute(end)
    for thread in threads:
        thread.join()


def main():
    if sys.argv[2:] == ["child"]:
        live(time.perf_counter() + SECONDS)
        return
    print("READY")
    sys.stdout.flush()
    sys.stdin.readline()
    end = time.perf_counter() + SECONDS
    children = []
    for _ in range(CHILDREN):
        pid = os.fork()
        if not pid:
            if children and sys.argv[2:] == ["executes"]:
                os.execv(sys.executable, [sys.executable, "-S", __file__, str(end - time.perf_counter()), "child"])
            live(end)
            os._exit(0)
        children.append(pid)
    live(end)
    for pid in children:
        os.waitpid(pid, 0)
    print(json.dumps({"processes": 1 + CHILDREN, "threads": (1 + CHILDREN) * THREADS}))
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
