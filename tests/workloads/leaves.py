# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A thread waits to the end of its process, or stays when the process's first thread has ended.

    leaves.py ends    as `waits`, for two seconds more, and the interpreter is ended in order
    leaves.py waits   a thread "the early bird" waits from before READY until the process ends, half a
                      second after GO
    leaves.py stays   the first thread ends before READY; after GO another one works for half a second
"""
import ctypes
import json
import os
import sys
import threading
import time

WORK_SECONDS = 0.5
LONG_SECONDS = 2


def waits():
    threading.Event().wait()


def spins():
    end = time.process_time() + WORK_SECONDS
    while time.process_time() < end:
        pass


def stays():
    with open("/proc/self/task/%d/stat" % os.getpid()) as f:
        while f.read().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.001)
            f.seek(0)
    print("READY", flush=True)
    sys.stdin.readline()
    spins()
    print(json.dumps({"cpu": {"spins": WORK_SECONDS}}), flush=True)
    sys.stdin.readline()
    os._exit(0)


if sys.argv[1] in ("waits", "ends"):
    threading.Thread(target=waits, name="the early bird", daemon=True).start()
    print("READY", flush=True)
    sys.stdin.readline()
    time.sleep(WORK_SECONDS)
    if sys.argv[1] == "ends":
        time.sleep(LONG_SECONDS)
        sys.exit(0)
    os._exit(0)
threading.Thread(target=stays).start()
ctypes.CDLL(None).pthread_exit(None)
