# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""reused.py: threads one after the other, most of which have the TID of the one before. Each computes in a
function of its own, t_N in a thread "t_N". READY, GO, then {"tids": [TID, ...]}, EXIT."""
import json
import os
import sys
import threading
import time

AGAIN = 5  # so often a TID comes again
THREADS_MAX = 60
SECONDS = 0.04
LAST_PID = "/proc/sys/kernel/ns_last_pid"
SOURCE = """
def %s():
    note()
    end = clock() + seconds
    while clock() < end: pass
"""
tids = []


def note():
    tids.append(int(os.path.basename(os.readlink("/proc/thread-self"))))


def free_tid():
    """The next thread gets the TID of the last one, unless another program is faster."""
    while os.path.exists("/proc/self/task/%d" % tids[-1]): pass
    with open(LAST_PID, "w") as f:
        f.write(str(tids[-1] - 1))


def run(name):
    scope = {"clock": time.perf_counter, "seconds": SECONDS, "note": note}
    exec(SOURCE % name, scope)
    thread = threading.Thread(target=scope[name], name=name)
    if tids:
        free_tid()
    thread.start()
    thread.join()


if __name__ == "__main__":
    print("READY")
    sys.stdout.flush()
    sys.stdin.readline()
    while len(tids) - len(set(tids)) < AGAIN and len(tids) < THREADS_MAX:
        run("t_%d" % len(tids))
    print(json.dumps({"tids": tids}))
    sys.stdout.flush()
    sys.stdin.readline()
