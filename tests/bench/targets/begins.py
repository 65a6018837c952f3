# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""begins.py WHAT COUNT PYTHON...: so many "processes" that begin and end, one after the other, or "threads" that sleep for
50 ms, 500 a second. Truth: {"seconds": how long that took}.
"""
import json
import subprocess
import sys
import threading
import time

THREAD_SECONDS, THREADS_A_SECOND = 0.05, 500


def processes(count):
    for _ in range(count):
        subprocess.check_call([*sys.argv[3:], "-S", "-E", "-I", "-c", "pass"])


def threads(count):
    begin = time.monotonic()
    for i in range(count):
        threading.Thread(target=time.sleep, args=(THREAD_SECONDS,)).start()
        time.sleep(max(0, begin + (i + 1) / THREADS_A_SECOND - time.monotonic()))


sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
start = time.monotonic()
{"processes": processes, "threads": threads}[sys.argv[1]](int(sys.argv[2]))
sys.stdout.write(json.dumps({"seconds": time.monotonic() - start}) + "\n")
sys.stdout.flush()
sys.stdin.readline()
