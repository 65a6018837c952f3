# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""interpreters.py THREADS SECONDS: interpreters that come and go, an interpreter a task, for so much CPU time.

READY, GO, then {"interpreters": how many there were}, EXIT. Each runs a_N, which calls b_N, which calls
c_N all the time, N its own number of five digits: functions of two numbers are on no stack. 3.8 and
later."""
import json
import sys
import threading
import time

TASK = """
import time
def a_%(n)05d(seconds):
    return b_%(n)05d(seconds)
def b_%(n)05d(seconds):
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:
        n += c_%(n)05d(n)
    return n
def c_%(n)05d(n):
    return n %% 3
a_%(n)05d(0.02)
"""
EACH = 20000  # numbers of a thread
ran = []


def module():
    try:
        import _interpreters
    except ImportError:  # before 3.13
        import _xxsubinterpreters as _interpreters
    return _interpreters


def tasks(interpreters, number, end):
    while time.process_time() < end:
        interpreter = interpreters.create()
        interpreters.run_string(interpreter, TASK % {"n": number})
        interpreters.destroy(interpreter)
        ran.append(number)
        number += 1


def main():
    threads, seconds = int(sys.argv[1]), float(sys.argv[2])
    interpreters = module()
    print("READY")
    sys.stdout.flush()
    sys.stdin.readline()
    end = time.process_time() + seconds
    running = [threading.Thread(target=tasks, args=(interpreters, i * EACH, end))
               for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    print(json.dumps({"interpreters": len(ran)}))
    sys.stdout.flush()
    sys.stdin.readline()


main()
